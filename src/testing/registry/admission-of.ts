import { AdmissionChain } from "../../admission/chain/chain.ts";
import type { AdmissionPlugin } from "../../admission/chain/plugin.ts";
import type { Kind } from "../../api/kind.ts";
import type { Admission } from "../../registry/write/request.ts";
import { alice } from "../admission/admission-fixture.ts";

/** The admission of one request for a kind, with these plugins. */
export function admissionOf(kind: unknown, name: string, ...plugins: readonly AdmissionPlugin[]): Admission {
  const of = kind as Kind;
  const context = {
    kind: of,
    group: of.group,
    subresource: "",
    objectKind: { group: of.group, version: of.version, kind: of.kind, schema: of.schema },
    namespace: "default",
    name,
    dryRun: false,
    user: alice,
    signal: new AbortController().signal,
    warn: () => {},
    annotate: () => {},
    optionsFor: () => undefined,
  };
  return { chain: new AdmissionChain(plugins), context };
}
