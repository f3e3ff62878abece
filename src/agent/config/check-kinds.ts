/** The agent's files for `svc apiserver config check`: its configuration, credential providers and manifests. */
import { configMap } from "../../api/core/config-map/schema.ts";
import { type Pod, pod } from "../../api/core/pod/schema.ts";
import { secret } from "../../api/core/secret/schema.ts";
import { dns1123Label, dns1123Subdomain } from "../../api/meta/validation/names.ts";
import { FlagError } from "../../flags/flag.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { invalidField, renderFieldError, requiredField } from "../../schema/validation/field-error.ts";
import { runSteps } from "../../std/async/steps.ts";
import { toAgentConfig } from "../options.ts";
import { formatProblem, type ManifestItem, type ManifestProblem, parseManifest } from "../sources/manifest.ts";
import { makeStaticPod } from "../sources/static-pod.ts";
import { CredentialProvidersError, readCredentialProviders } from "./credential-providers.ts";
import { loadAgentConfig } from "./load.ts";

export interface CheckedKind {
  readonly kind: string;
  readonly apiVersions: readonly string[];
  /** Throws an error, or an `AggregateError` with each. */
  /** For suggestions. */
  readonly suggestions?: ObjectSchema | undefined;
  readonly load: (source: { readonly file: string; readonly text: string }) => unknown;
}

const CONFIG_GROUPS = ["svclet.config.svc.io", "kubelet.config.k8s.io"];
const versionsOf = (...versions: readonly string[]): readonly string[] =>
  versions.flatMap((version) => CONFIG_GROUPS.map((group) => `${group}/${version}`));

export const agentFileKinds: readonly CheckedKind[] = [
  { kind: "SvcletConfiguration", apiVersions: versionsOf("v1beta1"), load: checkAgentConfiguration },
  { kind: "KubeletConfiguration", apiVersions: versionsOf("v1beta1"), load: checkAgentConfiguration },
  {
    kind: "CredentialProviderConfig",
    apiVersions: versionsOf("v1", "v1beta1", "v1alpha1"),
    load: async ({ file }) => {
      await readCredentialProviders(file, { tokens: true }).catch((error: unknown) => {
        throw error instanceof CredentialProvidersError ? toAggregate(error.problems) : error;
      });
    },
  },
  ...["List", "PodList", "ConfigMapList", "SecretList"].map((kind) => manifestKind(kind, undefined)),
  manifestKind("Pod", pod),
  manifestKind("ConfigMap", configMap),
  manifestKind("Secret", secret),
];

function manifestKind(kind: string, suggestions: ObjectSchema | undefined): CheckedKind {
  return { kind, apiVersions: ["v1"], suggestions, load: checkManifest };
}

function checkAgentConfiguration({ file }: { readonly file: string }): void {
  try {
    toAgentConfig(loadAgentConfig([`--config=${file}`], {}));
  } catch (error) {
    throw error instanceof FlagError ? toAggregate(error.problems) : error;
  }
}

/** Checks a manifest as the agent does in its directory of static pods. */
function checkManifest({ file, text }: { readonly file: string; readonly text: string }): void {
  const { pods, problems } = parseManifest(Buffer.from(text), file);
  const all = pods.flatMap((item) => {
    const made = runSteps(makeStaticPod(item, { kind: "file", name: file, nodeName: "node" }, ""));
    return [...checkNames(item), ...("pod" in made ? [] : made.problems)];
  });
  if (problems.length + all.length > 0) throw toAggregate([...problems, ...all].map(formatProblem));
}

/** The API server refuses the pod's mirror without them. */
function checkNames({ object, problem }: ManifestItem<Pod>): readonly ManifestProblem[] {
  const { name = "", namespace = "default" } = object.metadata ?? {};
  const errors = [
    ...(name === ""
      ? [requiredField("metadata.name", "name or generateName is required")]
      : dns1123Subdomain(name).map((why) => invalidField("metadata.name", name, why))),
    ...dns1123Label(namespace).map((why) => invalidField("metadata.namespace", namespace, why)),
  ];
  return errors.map((error) => problem(error.field, renderFieldError(error)));
}

function toAggregate(problems: readonly string[]): AggregateError {
  return new AggregateError(problems.map((problem) => new Error(problem)));
}
