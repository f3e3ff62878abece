/** Services with pods, one without a selector, and load balancers. */
import { endpointsKind } from "../../../api/core/endpoints/kind.ts";
import { nodeKind } from "../../../api/core/node/kind.ts";
import { podKind } from "../../../api/core/pod/kind.ts";
import { serviceKind } from "../../../api/core/service/kind.ts";
import { endpointSliceKind } from "../../../api/discovery/endpoint-slice/kind.ts";
import type { Scene, Story } from "./story.ts";

const SERVICE_LABEL = "kubernetes.io/service-name";
const labels = { app: "web" };
const containers = [{ name: "c", image: "img:1" }];

async function readEndpoints({ client, namespace }: Scene) {
  const slices = (await client.list(endpointSliceKind, { namespace })).items;
  const endpoints = (await client.list(endpointsKind, { namespace })).items;
  return {
    slices: slices
      .flatMap(({ metadata, ports = [], endpoints = [] }) =>
        endpoints.map(
          ({ targetRef, addresses, conditions }) =>
            `${metadata?.labels?.[SERVICE_LABEL]}:${ports.map(({ port }) => port).join()} ` +
            `${targetRef?.name ?? addresses.join()} ${conditions?.ready ?? "unknown"}`,
        ),
      )
      .sort(),
    endpoints: endpoints
      .flatMap(({ metadata, subsets = [] }) =>
        subsets.flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }) =>
          [...addresses, ...notReadyAddresses].map(
            ({ targetRef, ip }) =>
              `${metadata?.name}:${ports.map(({ port }) => port).join()} ${targetRef?.name ?? ip} ${addresses.length}`,
          ),
        ),
      )
      .sort(),
  };
}

export const endpointsStory: Story = {
  title: "the endpoints of services",
  controllers: ["endpoint", "endpointslice", "endpointslicemirroring"],
  nodes: 2,
  async play(scene) {
    const { client, namespace } = scene;
    const read = () => readEndpoints(scene);
    const create = (name: string, spec: object) => client.create(serviceKind, { metadata: { name, namespace }, spec });
    await create("web", { selector: labels, ports: [{ port: 80, targetPort: 8080 }] });
    for (const name of ["a", "b", "c"]) {
      await client.create(podKind, { metadata: { name, namespace, labels }, spec: { containers } });
    }
    await create("outside", { ports: [{ port: 80 }] });
    const subsets = [{ addresses: [{ ip: "192.0.2.7" }], ports: [{ port: 80 }] }];
    await client.create(endpointsKind, { metadata: { name: "outside", namespace }, subsets });
    await scene.step(read);
    await client.patch(podKind, { name: "a", namespace }, "merge", { metadata: { labels: { app: "other" } } });
    await client.delete(podKind, { name: "b", namespace });
    await client.patch(endpointsKind, { name: "outside", namespace }, "merge", {
      subsets: [{ addresses: [{ ip: "192.0.2.8" }], ports: [{ port: 81 }] }],
    });
    await scene.step(read);
    const ports = [{ port: 80, targetPort: 9090 }];
    await client.patch(serviceKind, { name: "web", namespace }, "merge", { spec: { ports } });
    await scene.step(read);
    for (const name of ["web", "outside"]) await client.delete(serviceKind, { name, namespace });
    await scene.step(read);
  },
};

export const loadBalancerStory: Story = {
  title: "the addresses of load balancers",
  controllers: ["service"],
  nodes: 2,
  async play(scene) {
    const { client, namespace, nodes } = scene;
    for (const [index, name] of nodes.entries()) {
      const addresses = [{ type: "ExternalIP", address: `192.0.2.${index + 1}` }];
      await client.patch(nodeKind, { name }, "strategic", { status: { addresses } }, { subresource: "status" });
    }
    const read = async () =>
      (await client.list(serviceKind, { namespace })).items.map(({ metadata, status }) => {
        const ingress = status?.loadBalancer?.ingress ?? [];
        return [metadata?.name, ...ingress.map(({ ip }) => ip)].join(" ");
      });
    const spec = { type: "LoadBalancer", ports: [{ port: 80 }] } as const;
    await client.create(serviceKind, { metadata: { name: "first", namespace }, spec });
    await scene.step(read);
    await client.create(serviceKind, {
      metadata: { name: "second", namespace },
      spec: { ...spec, ports: [{ port: 81 }] },
    });
    await client.delete(nodeKind, { name: nodes[1]! });
    await scene.step(read);
    await client.patch(serviceKind, { name: "second", namespace }, "merge", { spec: { type: "ClusterIP" } });
    await client.delete(serviceKind, { name: "first", namespace });
    await scene.step(read);
    await client.delete(nodeKind, { name: nodes[0]! });
  },
};
