/** A file of a flag that is reloaded when it changes, as Kubernetes' dynamic file content. */
import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { readFlagFile } from "./flag-file.ts";

export interface DynamicFile {
  readonly flag: string;
  readonly path: string;
  /** That of `readFlagFile` when absent. */
  readonly bytesMax?: number;
  /** Uses the content of the file. Throws, without an effect, for invalid content. */
  readonly apply: (content: string) => void | Promise<void>;
}

/** Loads the file now and after each change. Rejects when it is invalid now; later, invalid content is logged once. */
export async function loadDynamicFile(
  { flag, path, bytesMax, apply }: DynamicFile,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<Disposable> {
  let current = await readFlagFile(flag, path, bytesMax);
  await apply(current);
  let lastError = "";
  let reloading = Promise.resolve();
  const reload = async (): Promise<void> => {
    try {
      const next = await readFlagFile(flag, path, bytesMax);
      if (next === current && lastError === "") return;
      if (next !== current) {
        await apply(next);
        current = next;
        log.info("Reloaded a file", { flag, file: path });
      }
      lastError = "";
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (message === lastError) return;
      lastError = message;
      log.error("Cannot reload a file; its previous content stays in use", error, { flag, file: path });
    }
  };
  return watchFiles([path], clock, () => {
    reloading = reloading.then(reload);
  });
}
