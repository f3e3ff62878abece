import type { KeyPairFiles } from "../auth/pki/key-pair.ts";

/** The CAs of the signing controller. Files are read for each signature, so that they can be replaced. */
export interface SigningAuthorities {
  readonly clients: KeyPairFiles;
  /** For serving certificates of nodes. */
  readonly nodeServing: KeyPairFiles;
  /** The maximum lifetime of certificates. */
  readonly lifetimeMs: number;
}
