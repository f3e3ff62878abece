/** The keys of service accounts' tokens as the configuration names them. */
import {
  ownSigningKey,
  readSigningKey,
  readVerificationKeys,
  type SigningKey,
  type VerificationKey,
} from "../auth/service-account/keys.ts";
import type { ServiceAccountTokensConfig } from "./config.ts";
import { flagFile } from "./flag-file.ts";

export interface ServiceAccountKeys {
  signing(): Promise<SigningKey>;
  /** The signing key first. */
  verifying(): Promise<readonly VerificationKey[]>;
}

/** Files are read now; a key of the server's own is made when it is first needed. Throws, naming flag and file. */
export async function serviceAccountKeys(config: ServiceAccountTokensConfig): Promise<ServiceAccountKeys> {
  const { keyFiles, fallbackKeyFile, signingKeyFile, ownKeyFile } = config;
  const files = await Promise.all(
    keyFiles.map(async (path) => readVerificationKeys(path, await flagFile("--service-account-key-file", path))),
  );
  const fallback = fallbackKeyFile === undefined ? [] : await suitableKeys(fallbackKeyFile);
  const named =
    signingKeyFile === undefined
      ? undefined
      : readSigningKey(signingKeyFile, await flagFile("--service-account-signing-key-file", signingKeyFile));
  let own: Promise<SigningKey> | undefined;
  const signing = async (): Promise<SigningKey> => {
    if (named !== undefined) return named;
    // What went wrong may have been mended before the next call.
    own ??= ownSigningKey(ownKeyFile).catch((error: unknown) => {
      own = undefined;
      throw error;
    });
    return await own;
  };
  const others = [...files.flat(), ...fallback];
  return {
    signing,
    async verifying() {
      const first = await signing();
      return [first, ...others.filter(({ keyId }) => keyId !== first.keyId)];
    },
  };
}

/** None when the file's keys are of another sort. */
async function suitableKeys(path: string): Promise<readonly VerificationKey[]> {
  const pem = await flagFile("--tls-private-key-file", path);
  try {
    return readVerificationKeys(path, pem);
  } catch {
    return [];
  }
}
