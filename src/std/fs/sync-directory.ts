import { open } from "node:fs/promises";

/** The names of files in the directory are on disk afterwards. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
