/** The keys that sign and verify service account tokens. */
import { createLegacyPayload, type LegacyTokenClaims } from "../../auth/service-account/claims.ts";
import type { SignerObserver } from "../../auth/service-account/external-signer.ts";
import { createTokenIssuer, type TokenIssuer } from "../../auth/service-account/issuer.ts";
import { signJws } from "../../auth/service-account/jws.ts";
import {
  loadOrCreateSigningKey,
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
  /** The signing key first. `named` is the key id of a token, which an external signer may have to fetch. */
  verificationKeys(named?: string): Promise<readonly VerificationKey[]>;
  /** Changes with the set of keys: cached verifications of another version are invalid. */
  version(): number;
  /** The keys in the JWKS. */
  publishedKeys(): Promise<readonly VerificationKey[]>;
  /** Signs tokens without expiration; undefined with an external signer. */
  readonly signLegacy: ((claims: LegacyTokenClaims) => Promise<string>) | undefined;
  /** The maximum validity of tokens; undefined: no maximum. */
  readonly maxTokenSeconds: number | undefined;
}

export interface ServiceAccountKeysDeps {
  readonly clock: Clock;
  readonly observe: SignerObserver | undefined;
  readonly loadFile: (file: DynamicFile) => Promise<void>;
}

/**
 * Loads key files now and whenever they change, or connects to the external signer. Without a signing key, the server
 * generates one on first use. Errors name the flag.
 */
export async function openServiceAccountKeys(
  config: ServiceAccountTokensConfig,
  issuerName: string,
  { clock, observe, loadFile }: ServiceAccountKeysDeps,
): Promise<ServiceAccountKeys> {
  const { signingEndpoint } = config;
  return signingEndpoint === undefined
    ? await fileKeys(config, issuerName, loadFile)
    : await externalSignerKeys(signingEndpoint, config, issuerName, clock, observe);
}

async function externalSignerKeys(
  endpoint: string,
  { maxTokenMs }: ServiceAccountTokensConfig,
  issuerName: string,
  clock: Clock,
  observe: SignerObserver | undefined,
): Promise<ServiceAccountKeys> {
  // Loaded only when the flag is set, because it needs gRPC.
  const { openExternalSigner } = await import("../../auth/service-account/external-signer.ts");
  const signer = await openExternalSigner(endpoint, issuerName, clock, observe).catch((cause: unknown) => {
    throw new Error(`Cannot use --service-account-signing-endpoint="${endpoint}": ${(cause as Error).message}`, {
      cause,
    });
  });
  if (maxTokenMs > signer.maxTokenSeconds * 1000) {
    signer[Symbol.dispose]();
    const maximum = `the external signer allows at most ${signer.maxTokenSeconds} seconds`;
    throw new Error(`Cannot use --service-account-max-token-expiration of ${maxTokenMs / 1000} seconds: ${maximum}`);
  }
  return { ...signer, signLegacy: undefined };
}

async function fileKeys(
  config: ServiceAccountTokensConfig,
  issuerName: string,
  loadFile: ServiceAccountKeysDeps["loadFile"],
): Promise<ServiceAccountKeys> {
  const { keyFiles, fallbackKeyFile, signingKeyFile, generatedKeyFile } = config;
  let version = 0;
  const fileKeysByPath = new Map<string, readonly VerificationKey[]>();
  const loadKeys = (flag: string, path: string, read: (path: string, pem: string) => readonly VerificationKey[]) =>
    loadFile({
      flag,
      path,
      apply(pem) {
        fileKeysByPath.set(path, read(path, pem));
        version++;
      },
    });
  for (const path of new Set(keyFiles)) await loadKeys("--service-account-key-file", path, readVerificationKeys);
  if (fallbackKeyFile !== undefined)
    await loadKeys("--tls-private-key-file", fallbackKeyFile, readVerificationKeysIfAny);
  let configuredKey: SigningKey | undefined;
  if (signingKeyFile !== undefined) {
    const apply = (pem: string): void => {
      configuredKey = readSigningKey(signingKeyFile, pem);
      version++;
    };
    await loadFile({ flag: "--service-account-signing-key-file", path: signingKeyFile, apply });
  }
  let generatedKey: Promise<SigningKey> | undefined;
  const signingKey = async (): Promise<SigningKey> => {
    if (configuredKey !== undefined) return configuredKey;
    // A failure is not cached: the next call may succeed.
    generatedKey ??= loadOrCreateSigningKey(generatedKeyFile).catch((error: unknown) => {
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
    issuer: createTokenIssuer(issuerName, signingKey),
    verificationKeys: verifying,
    publishedKeys: verifying,
    version: () => version,
    signLegacy: async (claims) => signJws(createLegacyPayload(claims), await signingKey()),
    maxTokenSeconds: undefined,
    [Symbol.dispose]() {},
  };
}

/** Empty when the keys of the file cannot verify tokens. */
function readVerificationKeysIfAny(path: string, pem: string): readonly VerificationKey[] {
  try {
    return readVerificationKeys(path, pem);
  } catch {
    return [];
  }
}
