/** What is checked: the configuration that would run, and where its parts are. */
import type { AgentConfig } from "../agent-config.ts";

export interface ListenerSubject {
  /** `--port` */
  readonly flag: string;
  readonly port: number;
  /** An unspecified address occupies the port at every address. */
  readonly address: string;
}

export interface DirectorySubject {
  /** `--root-dir` */
  readonly flag: string;
  readonly path: string;
  /** Thresholds as in `evictionHard`; undefined: only the file system being full counts. */
  readonly space: string | undefined;
  readonly inodes: string | undefined;
  /** The store of the API server is in it. */
  readonly hasStore: boolean;
}

export interface CertificateSubject {
  /** `serving certificate of the agent` */
  readonly name: string;
  readonly certFile: string;
  /** The content, for a certificate inside another file. */
  readonly pem?: string;
  /** The same file for a certificate with its key; undefined: a certificate without a key. */
  readonly keyFile: string | undefined;
  /** The CA that must have signed it; undefined: any. */
  readonly caFile: string | undefined;
  /** Addresses and names that it must be valid for. */
  readonly names: readonly string[];
  /** The program creates it when it is missing. */
  readonly isCreated: boolean;
}

export interface ImagesSubject {
  readonly directory: string;
  /** Whether a flag names the directory, which must exist then. */
  readonly isSet: boolean;
  /** The record of imported archives. */
  readonly recordFile: string;
}

export interface DoctorSubject {
  readonly program: "svc agent" | "svc up";
  readonly config: AgentConfig;
  /** The API server that the machine will join; empty: none. */
  readonly join: string;
  /** Why the program refuses the configuration. */
  readonly problems: readonly string[];
  /** Warnings of the configuration. */
  readonly warnings: readonly string[];
  /** The process that runs it, if that is known and it runs. */
  readonly pid: number | undefined;
  /** The runtime that the program starts itself; undefined: it uses one that runs. */
  readonly managedRuntime:
    | { readonly missing: readonly string[]; readonly cniConfDir: string; readonly cniBinDir: string }
    | undefined;
  /** The API server is a part of the program. */
  readonly ownServer: boolean;
  readonly listeners: readonly ListenerSubject[];
  readonly directories: readonly DirectorySubject[];
  readonly certificates: readonly CertificateSubject[];
  readonly images: ImagesSubject | undefined;
}
