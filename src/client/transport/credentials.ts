import type { TlsIdentity } from "./dial.ts";

/** The server of a connection file, and the credentials for it. */
export interface ServerCredentials extends TlsIdentity {
  /** `https://host:6443`, perhaps with a path in front of the API. */
  readonly server: string;
  /** Bearer token; a function is called before every request. */
  readonly token?: string | (() => string | Promise<string>) | undefined;
}
