/** Files that flags name and operators change while the server runs. */

import { watchFiles } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import type { Clock } from "../../std/time/clock.ts";
import { flagFile } from "./flag-file.ts";

export interface FollowedFile {
  readonly flag: string;
  readonly path: string;
  /** Takes over what the file holds now. Throws, and changes nothing, for what cannot be used. */
  readonly apply: (content: string) => void | Promise<void>;
  /** Hears of every reading of changed content, and whether it could be used. */
  readonly reread?: ((worked: boolean) => void) | undefined;
}

/**
 * Reads the file, applies it, and does so again whenever it has changed. Rejects when it cannot be used now; later,
 * what cannot be used is complained of once and changes nothing.
 */
export async function followFile(
  { flag, path, apply, reread }: FollowedFile,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<Disposable> {
  let current = await flagFile(flag, path);
  await apply(current);
  let complaint = "";
  let looking = Promise.resolve();
  const look = async (): Promise<void> => {
    try {
      const next = await flagFile(flag, path);
      if (next === current && complaint === "") return;
      if (next !== current) {
        await apply(next);
        current = next;
        reread?.(true);
        log.info("Read a file anew", { flag, file: path });
      }
      complaint = "";
    } catch (error) {
      const said = error instanceof Error ? error.message : String(error);
      if (said === complaint) return;
      complaint = said;
      reread?.(false);
      log.error("Cannot use what a file holds now, and goes on with what it held", error, { flag, file: path });
    }
  };
  return watchFiles([path], clock, () => {
    looking = looking.then(look);
  });
}
