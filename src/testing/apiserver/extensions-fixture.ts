/** A custom resource definition with two versions for tests. */
import { createMemoryStore } from "../../storage/memory.ts";
import type { Store } from "../../storage/store.ts";
import { FakeClock } from "../std/fake-clock.ts";
import { until } from "../std/until.ts";
import { keepOpen } from "../storage/keep-open.ts";
import type { TestResponse, TestServer } from "./server-fixture.ts";

export const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
export const CRONTABS = "/apis/stable.example.com/v1/namespaces/default/crontabs";

const spec = {
  type: "object",
  required: ["cronSpec"],
  properties: {
    cronSpec: { type: "string", pattern: "^(\\S+ ){4}\\S+$" },
    image: { type: "string" },
    replicas: { type: "integer", minimum: 1, maximum: 10, default: 1 },
  },
  "x-kubernetes-validations": [{ rule: "self.replicas != 7", message: "seven brings bad luck" }],
};

export const crontabSchema = {
  type: "object",
  properties: {
    spec,
    status: {
      type: "object",
      properties: { replicas: { type: "integer" }, labelSelector: { type: "string" } },
    },
  },
};

export const v1 = {
  name: "v1",
  served: true,
  storage: true,
  schema: { openAPIV3Schema: crontabSchema },
  additionalPrinterColumns: [
    { name: "Spec", type: "string", jsonPath: ".spec.cronSpec" },
    { name: "Replicas", type: "integer", jsonPath: ".spec.replicas" },
  ],
  selectableFields: [{ jsonPath: ".spec.image" }],
  subresources: {
    status: {},
    scale: {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
      labelSelectorPath: ".status.labelSelector",
    },
  },
};

export const v1beta1 = {
  name: "v1beta1",
  served: true,
  storage: false,
  deprecated: true,
  schema: { openAPIV3Schema: crontabSchema },
};

/** Versions with the same schema, of which Kubernetes accepts selectable fields only if all have them. */
export const sharedVersions = [v1, { ...v1beta1, selectableFields: v1.selectableFields }];

export function crontabs(...versions: readonly object[]) {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "crontabs.stable.example.com" },
    spec: {
      group: "stable.example.com",
      scope: "Namespaced",
      names: { plural: "crontabs", kind: "CronTab", shortNames: ["ct"], categories: ["all"] },
      versions,
    },
  };
}

export function crontab(name: string, content: object) {
  return { apiVersion: "stable.example.com/v1", kind: "CronTab", metadata: { name }, spec: content };
}

/** Repeats the request until the response is as wanted; throws after a timeout. */
export async function waitForResponse(
  f: Pick<TestServer, "send">,
  line: string,
  isWanted: (answer: TestResponse) => boolean,
): Promise<TestResponse> {
  let response = await f.send(line);
  await until(
    () => `another response to ${line} than ${response.status} ${response.text}`,
    async () => {
      if (isWanted(response)) return true;
      response = await f.send(line);
      return isWanted(response);
    },
    { timeoutMs: 10_000 },
  );
  return response;
}

/** A store in memory that servers do not close. */
export function persistentStore(): Store {
  return keepOpen(createMemoryStore({ clock: new FakeClock() }));
}

/** Creates the definition and waits until it is served. */
export async function createDefinition(
  f: TestServer,
  definition: { readonly metadata: { readonly name: string } },
): Promise<void> {
  const created = await f.send(`POST ${CRDS}`, { body: definition });
  if (created.status !== 201) throw new Error(`the definition is rejected: ${created.text}`);
  await waitForResponse(f, `GET ${CRDS}/${definition.metadata.name}`, ({ json }) => isEstablished(json));
}

export function isEstablished(definition: unknown): boolean {
  const { status } = definition as { readonly status?: { readonly conditions?: readonly Condition[] } };
  return status?.conditions?.some((one) => one.type === "Established" && one.status === "True") === true;
}

interface Condition {
  readonly type: string;
  readonly status: string;
}
