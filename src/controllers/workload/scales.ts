/** The scale subresource of objects of any kind, for controllers that get kinds as text. */
import { customResourceDefinitionKind } from "../../api/apiextensions/custom-resource-definition/kind.ts";
import { scaleKind } from "../../api/autoscaling/scale/kind.ts";
import type { Scale } from "../../api/autoscaling/scale/schema.ts";
import { allVerbs, type Kind } from "../../api/kind.ts";
import { kubernetesGroup, parseApiVersion, svcGroup } from "../../api/scheme.ts";
import type { Client, ObjectName } from "../../client/client.ts";
import { bareMetadataKind } from "../../client/metadata-only.ts";
import type { Clock } from "../../std/time/clock.ts";
import { statusCodeOf } from "../api-errors.ts";

/** How long the kinds of custom resources are cached. */
const DEFINITIONS_MS = 30_000;

export interface ScalesDeps {
  readonly client: Client;
  /** Lists the definitions of custom resources. */
  readonly observer: Client;
  readonly kinds: readonly Kind[];
  readonly clock: Clock;
}

export class Scales {
  readonly #deps: ScalesDeps;
  #definitions: { readonly at: number; readonly kinds: readonly Kind[] } | undefined;

  constructor(deps: ScalesDeps) {
    this.#deps = deps;
  }

  /** The kinds of the group with the name, the one of the version first. Both aliases of a group are accepted. */
  async kindsOf(apiVersion: string, name: string, signal: AbortSignal): Promise<readonly Kind[]> {
    const parsed = parseApiVersion(apiVersion);
    if (parsed === undefined) return [];
    const { group, version } = parsed;
    const select = (kinds: readonly Kind[]): readonly Kind[] =>
      kinds
        .filter((kind) => kind.kind === name && svcGroup(kind.group) === svcGroup(group))
        .sort((a, b) => Number(b.version === version) - Number(a.version === version));
    const builtIn = select(this.#deps.kinds);
    return builtIn.length > 0 ? builtIn : select(await this.#customKinds(signal));
  }

  /** Rejects with a 404 if the object is missing, or its kind has no scale. */
  async get(kind: Kind, name: ObjectName, signal: AbortSignal): Promise<Scale> {
    return await this.#deps.client.getSubresource(kind, name, "scale", scaleKind, { signal });
  }

  async update(kind: Kind, scale: Scale, signal: AbortSignal): Promise<Scale> {
    return await this.#deps.client.replaceSubresource(kind, "scale", scale, scaleKind, signal);
  }

  async #customKinds(signal: AbortSignal): Promise<readonly Kind[]> {
    const { observer, clock } = this.#deps;
    const cached = this.#definitions;
    if (cached !== undefined && clock.monotonic() - cached.at < DEFINITIONS_MS) return cached.kinds;
    const { items } = await observer.list(customResourceDefinitionKind, {}, signal);
    const kinds = items.flatMap(({ spec }) =>
      spec.versions
        .filter(({ served }) => served)
        .map(({ name, subresources }) =>
          bareMetadataKind({
            group: spec.group,
            version: name,
            kind: spec.names.kind,
            listKind: spec.names.listKind ?? "",
            plural: spec.names.plural,
            singular: spec.names.singular ?? "",
            shortNames: [],
            categories: [],
            namespaced: spec.scope === "Namespaced",
            verbs: allVerbs,
            subresources:
              subresources?.scale === undefined
                ? []
                : [{ name: "scale", kind: "Scale", group: "autoscaling", version: "v1", verbs: ["get", "update"] }],
            storageName: `${spec.group}/${spec.names.plural}`,
            columns: [],
            selectableFields: {},
            strategy: {},
          }),
        ),
    );
    this.#definitions = { at: clock.monotonic(), kinds };
    return kinds;
  }
}

export function hasScale({ subresources }: Kind): boolean {
  return subresources.some(({ name }) => name === "scale");
}

/** `deployments.apps`, as in messages. */
export function resourceName({ group, plural }: Pick<Kind, "group" | "plural">): string {
  return group === "" ? plural : `${plural}.${kubernetesGroup(group)}`;
}

export function isNotFound(error: unknown): boolean {
  return statusCodeOf(error) === 404;
}
