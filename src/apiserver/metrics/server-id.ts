import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { serverIdentity } from "../control-plane/identity-lease.ts";

/** The label value that identifies this server in metrics: the hash of the name of its identity lease. */
export function serverIdHash(): string {
  return hashOf(serverIdentity(hostname()));
}

/** A hash for label values that must not reveal the text. */
export function hashOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
