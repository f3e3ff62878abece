import type { Client, Transport } from "./client.ts";

export interface ClientOptions {
  readonly transport: Transport;
  /** Fall back to the Kubernetes spelling of a group (`coordination.k8s.io`) where the server knows no other; true when absent. */
  readonly aliases?: boolean | undefined;
  /** Sent with every request, such as `authorization` for in-process components. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Name for managed fields and logs; the program's when absent. */
  readonly userAgent?: string | undefined;
}

export declare function createClient(options: ClientOptions): Client;
