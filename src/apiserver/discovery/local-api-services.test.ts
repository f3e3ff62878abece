import t from "tap";
import { apiServiceKind } from "../../api/apiregistration/api-service/kind.ts";
import type { APIService } from "../../api/apiregistration/api-service/schema.ts";
import { create } from "../../registry/create.ts";
import { get } from "../../registry/get.ts";
import { fixture, rejectionStatus } from "../../testing/registry/registry-fixture.ts";
import { registerLocalApiServices } from "./local-api-services.ts";

const { signal } = new AbortController();
const MANAGED = "kube-aggregator.kubernetes.io/automanaged";

function api(name: string, changes: Partial<APIService["spec"]> = {}, labels: Record<string, string> = {}): APIService {
  const [version = "", ...group] = name.split(".");
  const spec = { group: group.join("."), version, groupPriorityMinimum: 10, versionPriority: 10, ...changes };
  return { metadata: { name, labels }, spec };
}

t.test("registerLocalApiServices() creates an API service for each version and each name of a group", async (t) => {
  await using f = fixture();
  const registry = f.registries.of(apiServiceKind);
  await registerLocalApiServices(f.registries, { served: true, listed: true }, signal);
  const core = (await get(registry, f.scope(""), "v1.")).object;
  t.match(core, {
    metadata: { labels: { [MANAGED]: "onstart" } },
    spec: { version: "v1", groupPriorityMinimum: 18_000, versionPriority: 1 },
    status: { conditions: [{ type: "Available", status: "True", reason: "Local" }] },
  });
  for (const name of ["v1.apps", "v1.networking.k8s.io", "v1.networking.svc.io", "v2.autoscaling"]) {
    t.equal((await get(registry, f.scope(""), name)).object.metadata?.name, name);
  }
});

t.test("registerLocalApiServices() updates and deletes managed API services only", async (t) => {
  await using f = fixture();
  const registry = f.registries.of(apiServiceKind);
  const service = { name: "there", namespace: "default", port: 443 };
  const own = { [MANAGED]: "onstart" };
  await create(registry, f.scope(""), api("v1.apps", {}, own));
  await create(registry, f.scope(""), api("v9.apps", {}, own));
  await create(registry, f.scope(""), api("v1.policy", { service }));
  await create(registry, f.scope(""), api("v1.metrics.example", { service }));
  await registerLocalApiServices(f.registries, { served: false, listed: false }, signal);
  t.equal((await get(registry, f.scope(""), "v1.apps")).object.spec?.groupPriorityMinimum, 17_800);
  t.equal((await rejectionStatus(get(registry, f.scope(""), "v9.apps"))).code, 404);
  t.equal((await rejectionStatus(get(registry, f.scope(""), "v1.networking.k8s.io"))).code, 404);
  for (const name of ["v1.policy", "v1.metrics.example"]) {
    t.match((await get(registry, f.scope(""), name)).object.spec?.service, service);
  }
});

t.test("registerLocalApiServices() leaves the API service of a metrics-server, which kubectl applied", async (t) => {
  await using f = fixture();
  const registry = f.registries.of(apiServiceKind);
  const service = { name: "metrics-server", namespace: "kube-system", port: 443 };
  const applied = api("v1beta1.metrics.k8s.io", { service }, { [MANAGED]: "onstart" });
  await create(registry, f.scope(""), applied);
  await registerLocalApiServices(f.registries, { served: true, listed: false }, signal);
  t.match((await get(registry, f.scope(""), "v1beta1.metrics.k8s.io")).object.spec, { service, versionPriority: 10 });
});

t.test("registerLocalApiServices() writes nothing when all API services are up to date", async (t) => {
  await using f = fixture();
  await registerLocalApiServices(f.registries, { served: true, listed: true }, signal);
  const { store } = f.registries.deps;
  const before = store.current();
  await registerLocalApiServices(f.registries, { served: true, listed: true }, signal);
  t.equal(store.current(), before);
});
