import t from "tap";
import type { Service } from "../../../api/core/service/schema.ts";
import { makeServiceVariables } from "./service-links.ts";

function service(namespace: string, name: string, spec: Service["spec"]): Service {
  return { metadata: { namespace, name }, spec };
}

const api = service("default", "kubernetes", { clusterIP: "10.96.0.1", ports: [{ name: "https", port: 443 }] });
const db = service("shop", "my-db", {
  clusterIP: "10.96.5.1",
  ports: [
    { name: "sql", port: 5432 },
    { name: "adm-in", port: 8080, protocol: "UDP" },
  ],
});
const pod = (enableServiceLinks?: boolean) => ({
  metadata: { namespace: "shop" },
  spec: { containers: [], ...(enableServiceLinks === undefined ? {} : { enableServiceLinks }) },
});

t.test("makeServiceVariables() returns the address and ports in Docker's and Kubernetes' formats", async (t) => {
  t.same(Object.fromEntries(makeServiceVariables(pod(), [db])), {
    MY_DB_SERVICE_HOST: "10.96.5.1",
    MY_DB_SERVICE_PORT: "5432",
    MY_DB_SERVICE_PORT_SQL: "5432",
    MY_DB_SERVICE_PORT_ADM_IN: "8080",
    MY_DB_PORT: "tcp://10.96.5.1:5432",
    MY_DB_PORT_5432_TCP: "tcp://10.96.5.1:5432",
    MY_DB_PORT_5432_TCP_PROTO: "tcp",
    MY_DB_PORT_5432_TCP_PORT: "5432",
    MY_DB_PORT_5432_TCP_ADDR: "10.96.5.1",
    MY_DB_PORT_8080_UDP: "udp://10.96.5.1:8080",
    MY_DB_PORT_8080_UDP_PROTO: "udp",
    MY_DB_PORT_8080_UDP_PORT: "8080",
    MY_DB_PORT_8080_UDP_ADDR: "10.96.5.1",
  });
});

t.test("makeServiceVariables() selects the services of the pod's namespace and the API server", async (t) => {
  const hosts = (wanted: Iterable<Service>, links?: boolean) =>
    [...makeServiceVariables(pod(links), wanted)].filter(([name]) => name.endsWith("_SERVICE_HOST"));
  const elsewhere = service("other", "web", { clusterIP: "10.96.5.2", ports: [{ port: 1 }] });
  const local = service("shop", "kubernetes", { clusterIP: "10.96.5.3", ports: [{ port: 1 }] });
  const headless = service("shop", "none", { clusterIP: "None", ports: [{ port: 1 }] });
  t.same(hosts([db, api, elsewhere, headless]), [
    ["MY_DB_SERVICE_HOST", "10.96.5.1"],
    ["KUBERNETES_SERVICE_HOST", "10.96.0.1"],
  ]);
  t.same(hosts([db, api, elsewhere], false), [["KUBERNETES_SERVICE_HOST", "10.96.0.1"]]);
  for (const both of [
    [local, api],
    [api, local],
  ]) {
    t.same(
      hosts(both),
      [["KUBERNETES_SERVICE_HOST", "10.96.5.3"]],
      "the service of the pod's namespace has precedence",
    );
  }
});

t.test("makeServiceVariables() writes IPv6 addresses in URLs with brackets", async (t) => {
  const six = service("shop", "six", { clusterIP: "fd00::1", ports: [{ port: 80 }] });
  const variables = makeServiceVariables(pod(), [six]);
  t.equal(variables.get("SIX_PORT"), "tcp://[fd00::1]:80");
  t.equal(variables.get("SIX_PORT_80_TCP_ADDR"), "fd00::1");
});
