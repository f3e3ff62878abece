/** The directories of volumes on nodes, through the API server's node proxy. */
import { nodeKind } from "../../../api/core/node/kind.ts";
import type { Client } from "../../../client/client.ts";
import { parseQuantity } from "../../../schema/value/quantity.ts";

const NANOS = 1_000_000_000n;

/** Resolves with the path of the volume's directory on the node, which exists then. */
export async function ensureDirectory(
  client: Client,
  nodeName: string,
  volumeName: string,
  storage: string,
  signal: AbortSignal,
): Promise<string> {
  const body = { sizeBytes: toBytes(storage) };
  const subresource = `proxy/localVolumes/${volumeName}/ensure`;
  const response = await client.createSubresource(nodeKind, { name: nodeName }, subresource, body, signal);
  const path = (response as { readonly path?: unknown } | undefined)?.path;
  if (typeof path !== "string" || !path.startsWith("/")) {
    throw new Error(`the agent of node ${nodeName} returned no path of volume ${volumeName}`);
  }
  return path;
}

export async function removeDirectory(
  client: Client,
  nodeName: string,
  volumeName: string,
  signal: AbortSignal,
): Promise<void> {
  const subresource = `proxy/localVolumes/${volumeName}/remove`;
  await client.createSubresource(nodeKind, { name: nodeName }, subresource, {}, signal);
}

/** Fractions of a byte are rounded up. */
function toBytes(storage: string): number {
  const { nanos = 0n } = parseQuantity(storage) ?? {};
  const bytes = (nanos + NANOS - 1n) / NANOS;
  return Number(bytes > BigInt(Number.MAX_SAFE_INTEGER) ? BigInt(Number.MAX_SAFE_INTEGER) : bytes);
}
