import type { KeyPairFiles } from "../auth/pki/key-pair.ts";

/**
 * The CAs of the signing controller; requests for a signer without one are not signed. Files are read for each
 * signature, so that they can be replaced.
 */
export interface SigningAuthorities {
  readonly clients?: KeyPairFiles | undefined;
  /** For client certificates of nodes. */
  readonly nodeClients?: KeyPairFiles | undefined;
  /** For serving certificates of nodes. */
  readonly nodeServing?: KeyPairFiles | undefined;
  /** For requests without a signer, which former API versions accepted. */
  readonly legacy?: KeyPairFiles | undefined;
  /** The maximum lifetime of certificates. */
  readonly lifetimeMs: number;
}

/** One CA for all signers. */
export function singleAuthority(files: KeyPairFiles, lifetimeMs: number): SigningAuthorities {
  return { clients: files, nodeClients: files, nodeServing: files, legacy: files, lifetimeMs };
}
