/** The keys of service accounts' tokens as the configuration names them. */

import { type LegacyIssued, legacyPayloadOf } from "../../auth/service-account/claims.ts";
import type { SignerObserver } from "../../auth/service-account/external-signer.ts";
import { type TokenIssuer, tokenIssuer } from "../../auth/service-account/issuer.ts";
import { signJws } from "../../auth/service-account/jws.ts";
import {
  ownSigningKey,
  readSigningKey,
  readVerificationKeys,
  type SigningKey,
  type VerificationKey,
} from "../../auth/service-account/keys.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ServiceAccountTokensConfig } from "../config/config.ts";
import type { DynamicFile } from "../config/dynamic-file.ts";

export interface ServiceAccountKeys extends Disposable {
  readonly issuer: TokenIssuer;
  /** The signing key first. A key that a token names may have to be looked for. */
  verificationKeys(named?: string): Promise<readonly VerificationKey[]>;
  /** Another number whenever keys have come or gone: what they have verified is to be verified again. */
  version(): number;
  /** Those that others are told of. */
  publishedKeys(): Promise<readonly VerificationKey[]>;
  /** Signs tokens without an end; undefined where somebody else signs. */
  readonly signLegacy: ((claims: LegacyIssued) => Promise<string>) | undefined;
  /** Tokens of who signs last no longer; undefined: as long as is asked for. */
  readonly maxSeconds: number | undefined;
}

export interface ServiceAccountKeysDeps {
  readonly clock: Clock;
  readonly observe: SignerObserver | undefined;
  readonly loadFile: (file: DynamicFile) => Promise<void>;
}

/**
 * Files are read now and whenever they change, and who signs elsewhere is asked now; a key of the server's own is made
 * when it is first needed. Throws, naming the flag.
 */
export async function openServiceAccountKeys(
  config: ServiceAccountTokensConfig,
  issuerName: string,
  { clock, observe, loadFile: follow }: ServiceAccountKeysDeps,
): Promise<ServiceAccountKeys> {
  const { signingEndpoint } = config;
  return signingEndpoint === undefined
    ? await fileKeys(config, issuerName, follow)
    : await externalSignerKeys(signingEndpoint, config, issuerName, clock, observe);
}

async function externalSignerKeys(
  endpoint: string,
  { maxTokenMs }: ServiceAccountTokensConfig,
  issuerName: string,
  clock: Clock,
  observe: SignerObserver | undefined,
): Promise<ServiceAccountKeys> {
  // Loaded by those who need it.
  const { openExternalSigner } = await import("../../auth/service-account/external-signer.ts");
  const signer = await openExternalSigner(endpoint, issuerName, clock, observe).catch((cause: unknown) => {
    throw new Error(`Cannot use --service-account-signing-endpoint="${endpoint}": ${(cause as Error).message}`, {
      cause,
    });
  });
  if (maxTokenMs > signer.maxSeconds * 1000) {
    signer[Symbol.dispose]();
    const maximum = `the external signer lets tokens last for ${signer.maxSeconds} seconds`;
    throw new Error(`Cannot use --service-account-max-token-expiration of ${maxTokenMs / 1000} seconds: ${maximum}`);
  }
  return { ...signer, signLegacy: undefined };
}

async function fileKeys(
  config: ServiceAccountTokensConfig,
  issuerName: string,
  follow: ServiceAccountKeysDeps["loadFile"],
): Promise<ServiceAccountKeys> {
  const { keyFiles, fallbackKeyFile, signingKeyFile, generatedKeyFile: ownKeyFile } = config;
  let version = 0;
  const fileKeysByPath = new Map<string, readonly VerificationKey[]>();
  const loadKeys = (flag: string, path: string, read: (path: string, pem: string) => readonly VerificationKey[]) =>
    follow({
      flag,
      path,
      apply(pem) {
        fileKeysByPath.set(path, read(path, pem));
        version++;
      },
    });
  for (const path of new Set(keyFiles)) await loadKeys("--service-account-key-file", path, readVerificationKeys);
  if (fallbackKeyFile !== undefined) await loadKeys("--tls-private-key-file", fallbackKeyFile, readVerificationKeysIfAny);
  let configuredKey: SigningKey | undefined;
  if (signingKeyFile !== undefined) {
    const apply = (pem: string): void => {
      configuredKey = readSigningKey(signingKeyFile, pem);
      version++;
    };
    await follow({ flag: "--service-account-signing-key-file", path: signingKeyFile, apply });
  }
  let generatedKey: Promise<SigningKey> | undefined;
  const signingKey = async (): Promise<SigningKey> => {
    if (configuredKey !== undefined) return configuredKey;
    // What went wrong may have been mended before the next call.
    generatedKey ??= ownSigningKey(ownKeyFile).catch((error: unknown) => {
      generatedKey = undefined;
      throw error;
    });
    return await generatedKey;
  };
  const verifying = async (): Promise<readonly VerificationKey[]> => {
    const first = await signingKey();
    return [first, ...[...fileKeysByPath.values()].flat().filter(({ keyId }) => keyId !== first.keyId)];
  };
  return {
    issuer: tokenIssuer(issuerName, signingKey),
    verificationKeys: verifying,
    publishedKeys: verifying,
    version: () => version,
    signLegacy: async (claims) => signJws(legacyPayloadOf(claims), await signingKey()),
    maxSeconds: undefined,
    [Symbol.dispose]() {},
  };
}

/** None when the file's keys are of another sort. */
function readVerificationKeysIfAny(path: string, pem: string): readonly VerificationKey[] {
  try {
    return readVerificationKeys(path, pem);
  } catch {
    return [];
  }
}
