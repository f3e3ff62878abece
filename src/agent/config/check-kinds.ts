/** The agent's files for `svc apiserver config check`: its configuration, credential providers and manifests. */
import { configMap } from "../../api/core/config-map/schema.ts";
import { pod } from "../../api/core/pod/schema.ts";
import { secret } from "../../api/core/secret/schema.ts";
import { FlagError } from "../../flags/flag.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import { toAgentConfig } from "../options.ts";
import { formatProblem, parseManifest } from "../sources/manifest.ts";
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

/** As the agent reads a manifest of its directory of static pods. */
function checkManifest({ file, text }: { readonly file: string; readonly text: string }): void {
  const { pods, problems } = parseManifest(Buffer.from(text), file);
  const all = pods.flatMap((item) => {
    const made = makeStaticPod(item, { kind: "file", name: file, nodeName: "node" }, "");
    return "pod" in made ? [] : made.problems;
  });
  if (problems.length + all.length > 0) throw toAggregate([...problems, ...all].map(formatProblem));
}

function toAggregate(problems: readonly string[]): AggregateError {
  return new AggregateError(problems.map((problem) => new Error(problem)));
}
