/** How many files the agent may have open, and what it starts. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Logger } from "../../../std/log/logger.ts";

const run = promisify(execFile);

/** More than the hard limit takes a privilege; without it the agent runs with what it has. */
export async function setOpenFilesMax(limit: number | undefined, log: Logger): Promise<void> {
  if (limit === undefined) return;
  const { soft, hard } = await readOpenFilesMax();
  if (soft === limit) return;
  // The hard limit is only ever raised: who lowers it cannot go back.
  const limits = limit > hard ? `${limit}:${limit}` : `${limit}:`;
  await run("prlimit", ["--pid", String(process.pid), `--nofile=${limits}`]).catch((error: Error) => {
    log.warn("Cannot set the limit of open files", { wanted: limit, limit: soft, error: error.message.trim() });
  });
}

/** Infinite ones count as such. */
export async function readOpenFilesMax(): Promise<{ readonly soft: number; readonly hard: number }> {
  const text = await readFile("/proc/self/limits", "utf8");
  const [, soft, hard] = /^Max open files +(\S+) +(\S+)/m.exec(text) ?? [];
  const amount = (word = ""): number => (word === "unlimited" ? Number.POSITIVE_INFINITY : Number(word));
  return { soft: amount(soft), hard: amount(hard) };
}
