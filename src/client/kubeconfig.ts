/** What a connection to a cluster needs, files read and references followed. */
export interface ClusterAccess {
  readonly server: string;
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly token?: string | undefined;
  /** Read again by the transport's owner: tokens in files are rotated. */
  readonly tokenFile?: string | undefined;
  readonly tlsServerName?: string | undefined;
  /** Of the context; empty when it names none. */
  readonly namespace: string;
  readonly context: string;
  readonly user: string;
  readonly cluster: string;
}

export class KubeconfigError extends Error {
  override readonly name = "KubeconfigError";
  readonly path: string;
  /** `users[0].user.client-key`; empty when the whole file is meant. */
  readonly field: string;

  constructor(path: string, field: string, message: string, options?: { readonly cause?: unknown }) {
    super(`Cannot load ${path}: ${field === "" ? "" : `${field}: `}${message}`, options);
    this.path = path;
    this.field = field;
  }
}

/** The current context, or the one named. Throws `KubeconfigError`. */
export declare function loadKubeconfig(path: string, context?: string): Promise<ClusterAccess>;

export interface KubeconfigContent {
  readonly server: string;
  readonly cluster: string;
  readonly user: string;
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
  /** PEM, embedded as data. */
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly token?: string | undefined;
  readonly tlsServerName?: string | undefined;
}

/** Replaces the file atomically, mode 0600. */
export declare function writeKubeconfig(path: string, content: KubeconfigContent): Promise<void>;
