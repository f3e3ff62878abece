/** The controller of the status of admission policies: warns about expressions that do not fit the matched kinds. */

import { validatingAdmissionPolicyKind } from "../../api/admissionregistration/validating-admission-policy/kind.ts";
import type { ValidatingAdmissionPolicy } from "../../api/admissionregistration/validating-admission-policy/schema.ts";
import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import type { Kind } from "../../api/kind.ts";
import { formatApiVersion, kubernetesGroup, parseApiVersion, svcGroup } from "../../api/scheme.ts";
import { waitForCacheSync } from "../../client/informer/shared-informers.ts";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import { statusCodeOf } from "../api-errors.ts";
import type { ControllerDeps } from "../controller.ts";
import { createControllerQueue } from "../controller-queue.ts";
import { checkTypes, type KindLookup } from "./type-checking.ts";

const FIELD_MANAGER = "validatingadmissionpolicy-status";

export async function runPolicyStatusController(deps: ControllerDeps): Promise<void> {
  const { client, observer, kinds, log, signal, informers } = deps;
  const policies = informers.of(validatingAdmissionPolicyKind);
  const definitions: DefinitionList = async (fieldSelector) =>
    (await observer.list(customResourceDefinitionKind, { fieldSelector }, signal)).items;
  const lookup = createKindLookup(kinds, definitions);
  await using queue = createControllerQueue(deps, {
    name: "validatingadmissionpolicy-status",
    workers: 5,
    sync: async (name, stopping) => {
      const policy = policies.get(name);
      if (policy === undefined || isObserved(policy)) return;
      const expressionWarnings = await checkTypes(policy, lookup);
      const patch = {
        apiVersion: formatApiVersion(kubernetesGroup(validatingAdmissionPolicyKind.group), "v1"),
        kind: validatingAdmissionPolicyKind.kind,
        metadata: { name },
        status: {
          observedGeneration: policy.metadata?.generation,
          typeChecking: expressionWarnings.length === 0 ? {} : { expressionWarnings },
        },
      };
      try {
        const query = { fieldManager: FIELD_MANAGER, force: true };
        const options = { subresource: "status", query, signal: stopping };
        await client.patch(validatingAdmissionPolicyKind, { name }, "apply", patch, options);
      } catch (error) {
        if (statusCodeOf(error) !== 404) throw error;
      }
    },
    onError: (policy, error) => log.error("Failed to check admission policy, will retry", error, { policy }),
  });
  await waitForCacheSync([policies], signal);
  using subscriptions = new DisposableStack();
  subscriptions.defer(
    policies.subscribe({
      put: (policy) => {
        if (!isObserved(policy)) queue.add(policy.metadata?.name ?? "");
      },
    }),
  );
  await waitForAbort(signal);
}

function isObserved({ metadata, status }: ValidatingAdmissionPolicy): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
}

type DefinitionList = (fieldSelector?: string) => Promise<readonly CustomResourceDefinition[]>;

function createKindLookup(kinds: readonly Kind[], definitions: DefinitionList): KindLookup {
  const customKind = (definition: CustomResourceDefinition | undefined, version: string): Kind | undefined =>
    definition?.spec.versions.some(({ name, served }) => served && name === version)
      ? createCustomKind(definition, version)
      : undefined;
  return {
    byResource: async (group, version, plural) => {
      const builtIn = kinds.find((kind) => isOf(kind, group, version) && kind.plural === plural);
      if (builtIn !== undefined || group === "") return builtIn;
      const [definition] = await definitions(`metadata.name=${plural}.${group}`);
      return customKind(definition, version);
    },
    byKind: async (apiVersion, name) => {
      const { group, version } = parseApiVersion(apiVersion) ?? { group: "", version: "" };
      const builtIn = kinds.find((kind) => isOf(kind, group, version) && kind.kind === name);
      if (builtIn !== undefined || group === "") return builtIn;
      const all = await definitions();
      return customKind(
        all.find(({ spec }) => spec.group === group && spec.names.kind === name),
        version,
      );
    },
  };
}

function isOf(kind: Kind, group: string, version: string): boolean {
  return svcGroup(kind.group) === svcGroup(group) && kind.version === version;
}
