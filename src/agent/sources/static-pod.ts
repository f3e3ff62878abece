/** Converts a pod of a manifest to a static pod of this node, and decodes the ConfigMaps and Secrets beside it. */
import { createHash } from "node:crypto";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import type { Pod } from "../../api/core/pod/schema.ts";
import type { Secret } from "../../api/core/secret/schema.ts";
import { applyDefaults } from "../../schema/defaults.ts";
import { canonicalJson } from "../../schema/json/canonical-json.ts";
import { renderFieldError } from "../../schema/validation/field-error.ts";
import { validate } from "../../schema/validation/validate.ts";
import type { Steps } from "../../std/async/steps.ts";
import type { ManifestItem, ManifestProblem } from "./manifest.ts";

export interface StaticSource {
  readonly kind: "file" | "http";
  /** A path or a URL. */
  readonly name: string;
  readonly nodeName: string;
}

const hashAnnotation = "kubernetes.io/config.hash";
export const seenAnnotation = "kubernetes.io/config.seen";
export const sourceAnnotation = "kubernetes.io/config.source";

/**
 * As in Kubernetes, the name ends with the node's, the pod is bound to the node, and the uid is a hash of the
 * manifest's location and content, so that it is the same until the manifest changes. `seen` is RFC 3339.
 */
export function* makeStaticPod(
  { object, raw, problem }: ManifestItem<Pod>,
  source: StaticSource,
  seen: string,
): Steps<{ readonly pod: Pod } | { readonly problems: readonly ManifestProblem[] }> {
  const { kind, nodeName } = source;
  const uid = object.metadata?.uid ?? makeUid(raw, source);
  yield;
  const name = object.metadata?.name ?? "";
  const tolerations = object.spec?.tolerations ?? [];
  const tolerant =
    kind === "http" || tolerations.some(({ key, operator, effect }) => !key && operator && effect === "NoExecute");
  const bound = applyDefaults(podKind.schema, {
    ...object,
    metadata: {
      ...object.metadata,
      name: name === "" ? "" : `${name}-${nodeName}`,
      namespace: object.metadata?.namespace ?? "default",
      uid,
      annotations: {
        ...object.metadata?.annotations,
        [hashAnnotation]: uid,
        [seenAnnotation]: seen,
        [sourceAnnotation]: kind,
      },
    },
    spec: {
      ...object.spec,
      nodeName,
      // Taints of the node must not evict it.
      ...(tolerant ? {} : { tolerations: [...tolerations, { operator: "Exists", effect: "NoExecute" }] }),
    },
    status: { phase: "Pending" },
  } as Pod);
  yield;
  const pod = podKind.strategy.setDefaults?.(bound) ?? bound;
  yield;
  const invalid = validate(podKind.schema, pod);
  yield;
  const errors = [...invalid, ...(podKind.strategy.validate?.(pod) ?? [])];
  yield;
  if (errors.length === 0) return { pod };
  return {
    problems: errors.map((error) => {
      const text = renderFieldError(error);
      return problem(error.field, text.startsWith(`${error.field}: `) ? text.slice(error.field.length + 2) : text);
    }),
  };
}

function makeUid(raw: unknown, { kind, name, nodeName }: StaticSource): string {
  const where = kind === "file" ? `host:${nodeName}file:${name}` : `url:${name}`;
  return createHash("md5").update(canonicalJson(raw)).update(where).digest("hex");
}

export function decodeConfigMap({ data, binaryData }: ConfigMap): Readonly<Record<string, Uint8Array>> {
  return { ...decodeData(data, "utf8"), ...decodeData(binaryData, "base64") };
}

export function decodeSecret({ data, stringData }: Secret): Readonly<Record<string, Uint8Array>> {
  return { ...decodeData(data, "base64"), ...decodeData(stringData, "utf8") };
}

function decodeData(
  data: Readonly<Record<string, string>> | undefined,
  encoding: "utf8" | "base64",
): Readonly<Record<string, Uint8Array>> {
  return Object.fromEntries(Object.entries(data ?? {}).map(([key, text]) => [key, Buffer.from(text, encoding)]));
}
