/** Which admission plugins the verbs run, when, and with which objects. */
import t from "tap";
import type { Operation } from "../../admission/chain/attributes.ts";
import type { AdmissionPlugin } from "../../admission/chain/plugin.ts";
import { deploymentKind } from "../../api/apps/deployment/kind.ts";
import type { Deployment } from "../../api/apps/deployment/schema.ts";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import { forbidden } from "../../api/status.ts";
import { admissionOf } from "../../testing/registry/admission-of.ts";
import { fixture, rejectionStatus } from "../../testing/registry/registry-fixture.ts";
import { create } from "../create.ts";
import { remove } from "../delete.ts";
import { deleteCollection } from "../delete-collection.ts";
import { get } from "../get.ts";
import { createObjectReader, createObjectWriter } from "../object-access.ts";
import { patch } from "../patch.ts";
import { forbidPrivileged } from "../policies/allow-privileged.ts";
import { updateView } from "../subresources/view.ts";
import { update } from "../update.ts";

/** Records the requests that the plugin receives. */
function watching(log: string[], ...operations: readonly Operation[]): AdmissionPlugin {
  const describe = (object: ApiObject | undefined): string => {
    const { name = "", uid } = object?.metadata ?? {};
    return object === undefined ? "-" : `${name}${uid === undefined ? "" : "+uid"}`;
  };
  return {
    name: "watching",
    handles: ({ operation }) => operations.includes(operation),
    mutate: ({ operation, object, oldObject }) => {
      log.push(`mutate ${operation} ${describe(object)} ${describe(oldObject)}`);
      return undefined;
    },
    validate: ({ operation, object, oldObject }) => {
      log.push(`validate ${operation} ${describe(object)} ${describe(oldObject)}`);
    },
  };
}

/** Adds to the data of the object. */
const marking: AdmissionPlugin = {
  name: "marking",
  handles: ({ operation }) => operation !== "DELETE",
  mutate: ({ object }) => ({ ...object, data: { ...(object as ConfigMap).data, marked: "yes" } }) as ApiObject,
};

t.test(
  "create() runs mutating plugins before the name is generated, and validating plugins on the complete object",
  async (t) => {
    await using f = fixture();
    const maps = f.registries.of(configMapKind);
    const log: string[] = [];
    const admission = admissionOf(configMapKind, "", marking, watching(log, "CREATE"));
    const made = await create(maps, f.scope(), { metadata: { generateName: "a-", uid: "mine" } }, { admission });
    t.same(made.data, { marked: "yes" });
    const name = made.metadata?.name;
    t.same(log, ["mutate CREATE  -", `validate CREATE ${name}+uid -`]);
  },
);

t.test("create() runs mutating plugins once for several generated names", async (t) => {
  const bytes = [1, 1, 2];
  let call = 0;
  const random = {
    bytes: (length: number) => Buffer.alloc(length, bytes[Math.floor(call++ / 2)] ?? 7),
    fraction: () => 0,
  };
  await using f = fixture({ random: random as never });
  const maps = f.registries.of(configMapKind);
  const log: string[] = [];
  const admission = admissionOf(configMapKind, "", watching(log, "CREATE"));
  await create(maps, f.scope(), { metadata: { generateName: "a-" } });
  await create(maps, f.scope(), { metadata: { generateName: "a-" } }, { admission });
  t.equal(log.filter((line) => line.startsWith("mutate")).length, 1);
});

t.test("update() and patch() run plugins with the old object in every attempt", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  await create(maps, f.scope(), { metadata: { name: "a" } });
  const log: string[] = [];
  const admission = admissionOf(configMapKind, "a", marking, watching(log, "UPDATE"));
  const { object } = await update(maps, f.scope(), "a", { metadata: { name: "a" }, data: { b: "c" } }, { admission });
  t.same(object.data, { b: "c", marked: "yes" });
  t.same(log, ["mutate UPDATE a a+uid", "validate UPDATE a+uid a+uid"]);
  const value = { data: { b: null, marked: null } };
  const decode = (patched: unknown): ConfigMap => patched as ConfigMap;
  const after = await patch(maps, f.scope(), "a", { type: "merge", value }, { admission, decode });
  t.same(after.data, { marked: "yes" });
});

t.test("remove() and deleteCollection() run plugins for each object", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  for (const name of ["a", "b", "c"]) await create(maps, f.scope(), { metadata: { name } });
  const log: string[] = [];
  const keeping: AdmissionPlugin = {
    name: "keeping",
    handles: () => true,
    validate: ({ oldObject }) => {
      if (oldObject?.metadata?.name === "c") throw forbidden({ group: "", resource: "configmaps", name: "c" }, "kept");
    },
  };
  const admission = admissionOf(configMapKind, "", watching(log, "DELETE"), keeping);
  await remove(maps, f.scope(), "a", { admission });
  t.same(log, ["mutate DELETE - a+uid", "validate DELETE - a+uid"]);
  t.match(await rejectionStatus(deleteCollection(maps, f.scope(), {} as never, { admission })), { code: 403 });
  t.equal((await rejectionStatus(get(maps, f.scope(), "b"))).code, 404);
  t.match(await rejectionStatus(remove(maps, f.scope(), "c", { admission, dryRun: true })), { message: /kept$/ });
});

t.test("updateView() runs plugins with the view", async (t) => {
  await using f = fixture();
  const deployments = f.registries.of(deploymentKind);
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: { containers: [{ name: "c", image: "i" }] } };
  const sent = { metadata: { name: "web" }, spec: { replicas: 1, selector: { matchLabels: labels }, template } };
  await create(deployments, f.scope(), sent as unknown as Deployment);
  const view = deploymentKind.subresources.find(({ name }) => name === "scale")?.view;
  if (view === undefined) throw new Error("deployments have no scale");
  const seen: unknown[] = [];
  const doubling: AdmissionPlugin = {
    name: "doubling",
    handles: () => true,
    mutate: ({ object }) => {
      const { spec } = object as { readonly spec: { readonly replicas: number } };
      return { ...object, spec: { ...spec, replicas: spec.replicas * 2 } } as ApiObject;
    },
    validate: ({ object, oldObject }) => {
      seen.push([object, oldObject].map((one) => (one as { spec?: unknown }).spec));
    },
  };
  const admission = admissionOf(deploymentKind, "web", doubling);
  const scale = { metadata: { name: "web" }, spec: { replicas: 3 } } as ApiObject;
  t.match(await updateView(deployments, f.scope(), "web", scale, { view, admission }), { spec: { replicas: 6 } });
  t.same(seen, [[{ replicas: 6 }, { replicas: 1 }]]);
});

t.test("create() restores managedFields that a plugin made invalid, and dedups owner references", async (t) => {
  await using f = fixture();
  const maps = f.registries.of(configMapKind);
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "o", uid: "1" };
  const spoiling: AdmissionPlugin = {
    name: "spoiling",
    handles: () => true,
    mutate: ({ object }) => ({
      ...object,
      metadata: { ...object?.metadata, managedFields: [{ manager: "x" }], ownerReferences: [owner, owner] },
    }),
  };
  const warnings: string[] = [];
  const warn = (texts: readonly string[]): void => void warnings.push(...texts);
  const admission = admissionOf(configMapKind, "", spoiling);
  const made = await create(
    maps,
    f.scope(),
    { metadata: { name: "a" }, data: { b: "c" } },
    {
      admission,
      warn,
      fieldManager: "me",
    },
  );
  t.match(made.metadata?.managedFields, [{ manager: "me", operation: "Update" }]);
  t.equal(made.metadata?.ownerReferences?.length, 1);
  t.match(warnings, [
    /^\.metadata\.managedFields was in an invalid state after admission; this could be caused by an outdated/,
    /contains duplicate entries after mutating admission happens; .* duplicate UID\(s\) observed: 1$/,
  ]);
});

t.test("createObjectReader() and createObjectWriter() read and write objects for plugins", async (t) => {
  await using f = fixture();
  const { signal } = new AbortController();
  const lookup = createObjectReader(f.registries);
  const effects = createObjectWriter(f.registries);
  await effects.create(configMapKind, "default", { metadata: { name: "a" } }, signal);
  await effects.create(configMapKind, "other", { metadata: { name: "a" } }, signal);
  t.match(await lookup.get(configMapKind, "default", "a", signal), { metadata: { namespace: "default" } });
  t.equal(await lookup.get(configMapKind, "default", "b", signal), undefined);
  t.equal((await lookup.list(configMapKind, "", signal)).length, 2);
  t.equal((await lookup.list(configMapKind, "other", signal)).length, 1);
  t.match(lookup.peek(configMapKind, "other", "a"), { metadata: { name: "a" } });
  const at = { namespace: "default", name: "a", subresource: "" };
  const next = (oldObject: ConfigMap): ConfigMap => ({ ...oldObject, data: { x: "y" } });
  t.match(await effects.update(configMapKind, at, next, signal), { data: { x: "y" } });
});

t.test("forbidPrivileged() rejects privileged containers in pods and templates, and keeps existing ones", async (t) => {
  await using f = fixture({ validatePolicy: forbidPrivileged });
  const container = { name: "c", image: "i", securityContext: { privileged: true } };
  const labels = { app: "web" };
  const template = { metadata: { labels }, spec: { containers: [container], initContainers: [container] } };
  const deployment = { metadata: { name: "web" }, spec: { selector: { matchLabels: labels }, template } };
  const sent = deployment as unknown as Deployment;
  const refused = await rejectionStatus(create(f.registries.of(deploymentKind), f.scope(), sent));
  t.match(
    refused.details?.causes?.filter(({ message }) => message?.endsWith("disallowed by cluster policy")),
    [
      { field: "spec.template.spec.initContainers[0].securityContext.privileged" },
      { field: "spec.template.spec.containers[0].securityContext.privileged" },
    ],
  );
  const kind = deploymentKind as unknown as Kind;
  t.same(forbidPrivileged(kind, sent as ApiObject, sent as ApiObject), []);
  const hosting = {
    spec: { template: { spec: { containers: [], securityContext: { windowsOptions: { hostProcess: true } } } } },
  };
  t.match(forbidPrivileged(kind, hosting as ApiObject, undefined), [
    { field: "spec.template.spec", detail: "hostProcess containers are disallowed by cluster policy" },
  ]);
});
