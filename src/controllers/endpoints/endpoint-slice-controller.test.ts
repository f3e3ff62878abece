import t from "tap";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { serviceKind } from "../../api/core/service/kind.ts";
import type { Service } from "../../api/core/service/schema.ts";
import type { EndpointSlice } from "../../api/discovery/endpoint-slice/schema.ts";
import { objectsOf, syncOnce, type Write } from "../../testing/controllers/sync-once.ts";
import { runEndpointSliceController } from "./endpoint-slice-controller.ts";

const service: Service = {
  metadata: { name: "web", namespace: "ns", uid: "web" },
  spec: {
    selector: { app: "web" },
    ports: [{ port: 80, targetPort: 80, protocol: "TCP" }],
    clusterIP: "10.0.0.1",
    ipFamilies: ["IPv4", "IPv6"],
  },
};

function show({ verb, kind, object }: Write): string {
  if (kind.kind === "Event") return (object as { readonly message?: string }).message ?? "";
  return `${verb} ${(object as EndpointSlice).addressType}`;
}

t.test("slices of one IP family are written although those of the other cannot be", async (t) => {
  const run = (failing: readonly string[]): Promise<readonly string[]> =>
    syncOnce(runEndpointSliceController, objectsOf(serviceKind, service), [objectsOf(podKind), objectsOf(nodeKind)], {
      show,
      fail: (write) => {
        if (failing.includes(write)) throw new Error("refused");
      },
    });
  const prefix = "Error updating Endpoint Slices for Service ns/web:";
  const problem = "failed to create EndpointSlice for Service ns/web: refused";
  t.same(await run(["create IPv4"]), ["create IPv4", "create IPv6", `${prefix} ${problem}`]);
  t.same(await run(["create IPv4", "create IPv6"]), [
    "create IPv4",
    "create IPv6",
    `${prefix} [${problem}, ${problem}]`,
  ]);
});
