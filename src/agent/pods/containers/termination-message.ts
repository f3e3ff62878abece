/** Reads the termination message of a container. */
import type { FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { parseLogLine } from "../../logs/log-line.ts";
import { annotations, type ObservedContainer } from "../../runtime/observation.ts";
import { openLog, openRegularFile } from "./regular-file.ts";

const FILE_BYTES_MAX = 4096;
const FALLBACK_BYTES_MAX = 2048;
const FALLBACK_LINES_MAX = 80;
/** More than 80 lines with their prefixes, or 2 KiB of content that begin within a part of 16 KiB. */
const LOG_BYTES_READ = 32 * 1024;
/** All containers of a pod together. */
const POD_BYTES_MAX = 12 * 1024;

/** The container with its termination message, if it exited and has one. Never rejects. */
export async function addTerminationMessage(
  container: ObservedContainer,
  containers: number,
): Promise<ObservedContainer> {
  if (container.state !== "exited") return container;
  const message = [container.message, await readMessage(container)].filter((each) => each !== "").join(": ");
  // As in Kubernetes, the first bytes of what is the end of a long file.
  const limit = Math.floor(POD_BYTES_MAX / Math.max(1, containers));
  return { ...container, message: Buffer.from(message).subarray(0, limit).toString("utf8") };
}

async function readMessage(container: ObservedContainer): Promise<string> {
  const path = container.annotations[annotations.terminationMessagePath];
  // The agent's own file is mounted last, over any mount of the pod at this path.
  const file = container.mounts.findLast((each) => each.containerPath === path)?.hostPath;
  const text = file === undefined ? "" : await readTail(() => openRegularFile(file, dirname(file)), FILE_BYTES_MAX);
  if (text !== "") return text;
  const policy = container.annotations[annotations.terminationMessagePolicy];
  if (policy !== "FallbackToLogsOnError" || container.exitCode === 0) return "";
  return joinLog(await readTail(() => openLog(container.logPath), LOG_BYTES_READ));
}

/** The end of a log: at most 80 lines of the file, then at most 2 KiB of their content. Parts of a line are joined. */
function joinLog(text: string): string {
  const lines = text.split("\n").filter((line) => line !== "");
  const parts = lines.slice(-FALLBACK_LINES_MAX).map((line) => {
    const { content, partial } = parseLogLine(line) ?? {};
    return content === undefined ? "" : partial === true ? content : `${content}\n`;
  });
  return Buffer.from(parts.join("")).subarray(-FALLBACK_BYTES_MAX).toString("utf8");
}

/** The last bytes of a file; empty when it cannot be read. */
async function readTail(open: () => Promise<FileHandle>, bytes: number): Promise<string> {
  try {
    await using file = await open();
    const { size } = await file.stat();
    const length = Math.min(size, bytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, size - length);
    return buffer.subarray(0, bytesRead).toString("utf8");
  } catch {
    return "";
  }
}
