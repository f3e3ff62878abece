import type { KeyPairFiles } from "../auth/pki/key-pair.ts";

/** Who signs. Files are read for each signature, so that an authority may be exchanged. */
export interface SigningAuthorities {
  readonly clients: KeyPairFiles;
  /** For the serving certificates of nodes. */
  readonly nodeServing: KeyPairFiles;
  /** Certificates last no longer. */
  readonly lifetimeMs: number;
}
