/** The limit of open files of the agent and its child processes. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Logger } from "../../../std/log/logger.ts";

const run = promisify(execFile);

/** Raising the hard limit needs a capability; without it the agent keeps its limit. */
export async function setOpenFilesMax(limit: number | undefined, log: Logger): Promise<void> {
  if (limit === undefined) return;
  const { soft, hard } = await readOpenFilesMax();
  if (soft === limit) return;
  // The hard limit is never lowered: that could not be undone.
  const limits = limit > hard ? `${limit}:${limit}` : `${limit}:`;
  await run("prlimit", ["--pid", String(process.pid), `--nofile=${limits}`]).catch((error: Error) => {
    log.warn("Cannot set the limit of open files", { wanted: limit, limit: soft, error: error.message.trim() });
  });
}

/** `unlimited` is infinity. */
export async function readOpenFilesMax(): Promise<{ readonly soft: number; readonly hard: number }> {
  const text = await readFile("/proc/self/limits", "utf8");
  const [, soft, hard] = /^Max open files +(\S+) +(\S+)/m.exec(text) ?? [];
  const parseLimit = (word = ""): number => (word === "unlimited" ? Number.POSITIVE_INFINITY : Number(word));
  return { soft: parseLimit(soft), hard: parseLimit(hard) };
}
