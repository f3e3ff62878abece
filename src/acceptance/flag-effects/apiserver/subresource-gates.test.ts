/** Subresources with a feature gate are served, listed and described only while the gate is on. */
import t from "tap";
import { builtinKinds } from "../../../api/builtin.ts";
import { withGates } from "./gate-settings.ts";
import { startServer } from "./support.ts";

const AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
interface Listed {
  readonly resource: string;
  readonly subresources?: readonly { readonly subresource: string }[];
}

const gated = builtinKinds.flatMap((kind) =>
  kind.subresources.flatMap(({ name, featureGate }) =>
    featureGate === undefined ? [] : [{ kind, name, featureGate }],
  ),
);

t.test(
  "a subresource exists in paths and documents while its gate is on, and in none of them while it is off",
  async (t) => {
    t.match(gated, [{ name: "resize", featureGate: "InPlacePodVerticalScaling" }]);
    for (const { kind, name, featureGate } of gated) {
      for (const value of [true, false]) {
        await using server = await startServer(withGates({ [featureGate]: value }));
        const base = kind.group === "" ? `api/${kind.version}` : `apis/${kind.group}/${kind.version}`;
        const item = `/${base}${kind.namespaced ? "/namespaces/default" : ""}/${kind.plural}/none/${name}`;
        const get = async (path: string, accept = "application/json") =>
          (await server.send(`GET ${path}`, undefined, { ...server.admin, accept })).json;
        const { resources } = await get(`/${base}`);
        const listed = resources.some((each: { readonly name: string }) => each.name === `${kind.plural}/${name}`);
        const { items } = await get(kind.group === "" ? "/api" : "/apis", AGGREGATED);
        const aggregated = items
          .flatMap((each: { readonly versions: readonly { readonly resources: readonly Listed[] }[] }) => each.versions)
          .flatMap((each: { readonly resources: readonly Listed[] }) => each.resources)
          .find((each: Listed) => each.resource === kind.plural).subresources;
        const has = ({ paths }: { readonly paths: object }): boolean =>
          Object.keys(paths).some((path) => path.endsWith(`/${kind.plural}/{name}/${name}`));
        t.same(
          {
            listed,
            aggregated: aggregated.some((each: { readonly subresource: string }) => each.subresource === name),
            v2: has(await get("/openapi/v2")),
            v3: has(await get(`/openapi/v3/${base}`)),
            message: (await get(item)).message,
          },
          {
            listed: value,
            aggregated: value,
            v2: value,
            v3: value,
            message: value ? `${kind.plural} "none" not found` : "the server could not find the requested resource",
          },
          `${kind.plural}/${name} with ${featureGate}=${value}`,
        );
      }
    }
  },
);
