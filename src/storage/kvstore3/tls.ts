/** The certificates of connections to the store: `--kvstore-cafile`, `--kvstore-certfile`, `--kvstore-keyfile`. */
import { readFile } from "node:fs/promises";

export interface StoreTlsFiles {
  readonly caFile?: string | undefined;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

/** PEM. */
export interface StoreTls {
  readonly ca: Buffer | undefined;
  readonly cert: Buffer | undefined;
  readonly key: Buffer | undefined;
}

/** Rejects with an error that names the file. */
export async function readStoreTls({ caFile, certFile, keyFile }: StoreTlsFiles): Promise<StoreTls> {
  const read = async (path: string | undefined): Promise<Buffer | undefined> =>
    path === undefined || path === "" ? undefined : await readFile(path);
  const [ca, cert, key] = await Promise.all([read(caFile), read(certFile), read(keyFile)]);
  return { ca, cert, key };
}

export function sameTls(a: StoreTls | undefined, b: StoreTls | undefined): boolean {
  const same = (x: Buffer | undefined, y: Buffer | undefined): boolean =>
    x === undefined || y === undefined ? x === y : x.equals(y);
  if (a === undefined || b === undefined) return a === b;
  return same(a.ca, b.ca) && same(a.cert, b.cert) && same(a.key, b.key);
}
