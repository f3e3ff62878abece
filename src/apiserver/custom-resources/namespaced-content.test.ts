import t from "tap";
import { createCustomKind } from "../../api/apiextensions/custom-resource/kind.ts";
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import type { CustomResourceDefinition } from "../../api/apiextensions/custom-resource-definition/schema.ts";
import { namespaceKind } from "../../api/core/namespace/kind.ts";
import type { ApiObject } from "../../api/kind.ts";
import { crontabs, isEstablished, sharedVersions } from "../../testing/apiserver/extensions-fixture.ts";
import { startInMemoryCluster, waitForObject } from "../../testing/apiserver/in-memory-cluster.ts";

t.test("the namespace controller deletes custom resources, and reports remaining ones", async (t) => {
  const client = await startInMemoryCluster(t, { embeddedControllers: ["namespace"] });
  const definition = crontabs(...sharedVersions) as unknown as CustomResourceDefinition;
  await client.create(customResourceDefinitionKind, definition);
  await waitForObject(client, customResourceDefinitionKind, "crontabs.stable.example.com", undefined, isEstablished);
  const kind = createCustomKind(definition, "v1");
  const namespace = "doomed";
  await client.create(namespaceKind, { metadata: { name: namespace } });
  const spec = { cronSpec: "* * * * *" };
  await client.create(kind, { metadata: { name: "free", namespace }, spec } as ApiObject);
  const held = { name: "held", namespace, finalizers: ["example.com/wait"] };
  await client.create(kind, { metadata: held, spec } as ApiObject);
  await client.delete(namespaceKind, { name: namespace });
  const waiting = await waitForObject(client, namespaceKind, namespace, undefined, (object) =>
    (object?.status?.conditions ?? []).some(({ type }) => type === "NamespaceContentRemaining"),
  );
  const message = "Some resources are remaining: crontabs.stable.example.com has 1 resource instances";
  t.match(
    waiting?.status?.conditions?.find(({ type }) => type === "NamespaceContentRemaining"),
    { message },
  );
  const object = await client.get(kind, { name: "held", namespace });
  await client.update(kind, { ...object, metadata: { ...object.metadata, finalizers: [] } });
  await waitForObject(client, namespaceKind, namespace, undefined, (gone) => gone === undefined);
  t.same((await client.list(kind, {})).items, []);
});
