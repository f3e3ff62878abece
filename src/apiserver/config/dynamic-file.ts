/** Files that flags name and operators change while the server runs. */

import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { readFlagFile } from "./flag-file.ts";

export interface DynamicFile {
  readonly flag: string;
  readonly path: string;
  /** Takes over what the file holds now. Throws, and changes nothing, for what cannot be used. */
  readonly apply: (content: string) => void | Promise<void>;
  /** Hears of every reading of changed content, and whether it could be used. */
  readonly onReload?: ((worked: boolean) => void) | undefined;
}

/**
 * Reads the file, applies it, and does so again whenever it has changed. Rejects when it cannot be used now; later,
 * what cannot be used is complained of once and changes nothing.
 */
export async function loadDynamicFile(
  { flag, path, apply, onReload: reread }: DynamicFile,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<Disposable> {
  let current = await readFlagFile(flag, path);
  await apply(current);
  let lastError = "";
  let reloading = Promise.resolve();
  const reload = async (): Promise<void> => {
    try {
      const next = await readFlagFile(flag, path);
      if (next === current && lastError === "") return;
      if (next !== current) {
        await apply(next);
        current = next;
        reread?.(true);
        log.info("Read a file anew", { flag, file: path });
      }
      lastError = "";
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message === lastError) return;
      lastError = message;
      reread?.(false);
      log.error("Cannot use what a file holds now, and goes on with what it held", error, { flag, file: path });
    }
  };
  return watchFiles([path], clock, () => {
    reloading = reloading.then(reload);
  });
}
