import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { serverIdentity } from "../control-plane/identity-lease.ts";

/** By which metrics tell the servers of one cluster apart: of the name of this server's lease. */
export function serverIdHash(): string {
  return hashOf(serverIdentity(hostname()));
}

/** What is told apart, and not told itself. */
export function hashOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
