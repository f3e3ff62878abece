/** The built-in kinds that an API server serves. */
import { builtinKinds } from "../api/builtin.ts";
import type { Kind } from "../api/kind.ts";
import { kubernetesGroup } from "../api/scheme.ts";
import type { Transport } from "../client/client.ts";
import { readError, readValue } from "../client/response.ts";
import { makeRequest } from "../http/request.ts";

/** Rejects when the server cannot be reached or rejects the credentials. */
export async function findServedKinds(transport: Transport, signal: AbortSignal): Promise<readonly Kind[]> {
  const versions = new Map<string, Promise<ReadonlySet<string>>>();
  const served = await Promise.all(
    builtinKinds.map(async (kind) => {
      for (const group of new Set([kind.group, kubernetesGroup(kind.group)])) {
        const path = group === "" ? `/api/${kind.version}` : `/apis/${group}/${kind.version}`;
        const found = versions.get(path) ?? readResources(transport, path, signal);
        versions.set(path, found);
        if ((await found).has(kind.plural)) return true;
      }
      return false;
    }),
  );
  return builtinKinds.filter((_, index) => served[index] === true);
}

async function readResources(transport: Transport, path: string, signal: AbortSignal): Promise<ReadonlySet<string>> {
  const response = await transport(makeRequest({ path, headers: { accept: "application/json" }, signal }));
  if (response.status === 404) {
    await readError(response);
    return new Set();
  }
  const list = (await readValue(response)) as
    | { readonly resources?: readonly { readonly name?: unknown }[] }
    | undefined;
  return new Set((list?.resources ?? []).map(({ name }) => String(name)));
}
