/** Which groups, versions and resources there are, as clients ask before they ask for anything else. */
import { createHash } from "node:crypto";
import { type Kind, storageKindOf } from "../../api/kind.ts";
import { isPersisted } from "../../api/review-kind.ts";
import { formatApiVersion, kubernetesGroup, type Scheme } from "../../api/scheme.ts";
import type { HttpResponse } from "../../http/message.ts";
import { negotiate } from "../../http/negotiate.ts";
import { bytesResponse } from "../../http/respond.ts";
import { spellings } from "../handlers/routes.ts";
import type { RequestContext } from "../request/request-context.ts";
import { formNotAcceptable, isPretty, notAcceptable } from "../responses/status-response.ts";
import { type Described, type Document, documentOf } from "./discovery-documents.ts";

interface ServedVersion {
  readonly group: string;
  readonly version: string;
  readonly kinds: readonly Kind[];
  /** Whether the Kubernetes spelling is served too. */
  readonly aliases: boolean;
}

interface Aggregated {
  readonly document: Document;
  readonly etag: string;
}

const OFFERS = [
  { mediaType: "application/json", magic: "k8s" },
  { mediaType: "application/yaml", magic: "k8s" },
  { mediaType: "application/vnd.kubernetes.protobuf", magic: "k8s" },
  { mediaType: "application/vnd.svc.protobuf", magic: "svc" },
] as const;
type Offer = (typeof OFFERS)[number];

const YAML = "application/yaml";
/** What refusals name: the project's own spelling of protobuf is served and not advertised. */
const ANSWERS = OFFERS.slice(0, 3).map((offer) => offer.mediaType);
const AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Made when first asked for, and again when the kinds have changed. */
export class Discovery {
  readonly #scheme: Scheme;
  readonly #aliases: boolean;
  readonly #address: () => string;
  #pages: { readonly changes: number; readonly pages: Pages } | undefined;

  /** `address` is where clients are told that the server is: `10.0.0.1:6443`. */
  constructor(scheme: Scheme, aliases: boolean, address: () => string) {
    this.#scheme = scheme;
    this.#aliases = aliases;
    this.#address = address;
  }

  /** Every path this answers now. */
  paths(): readonly string[] {
    return this.#current().paths();
  }

  has(path: string): boolean {
    return this.#current().has(path);
  }

  /** Throws a 406 when the client takes none of the forms there are. */
  answer(path: string, context: RequestContext): HttpResponse {
    return this.#current().answer(path, context);
  }

  #current(): Pages {
    const { changeCount: changes } = this.#scheme;
    if (this.#pages?.changes !== changes) {
      this.#pages = { changes, pages: new Pages(this.#scheme, this.#aliases, this.#address) };
    }
    return this.#pages.pages;
  }
}

class Pages {
  readonly #versions: readonly ServedVersion[];
  readonly #documents = new Map<string, Document>();
  readonly #aggregated = new Map<string, Aggregated>();
  readonly #address: () => string;

  constructor(scheme: Scheme, aliases: boolean, address: () => string) {
    this.#versions = versionsOf(scheme, aliases);
    const groups = this.#groups();
    this.#put("/apis", { kind: "APIGroupList", apiVersion: "v1", groups });
    for (const group of groups) this.#put(`/apis/${group.name}`, { kind: "APIGroup", apiVersion: "v1", ...group });
    for (const served of this.#versions) this.#put(pathOf(served), resourceList(served));
    this.#aggregate("/api", (group) => group === "");
    this.#aggregate("/apis", (group) => group !== "");
    this.#address = address;
  }

  paths(): readonly string[] {
    return ["/api", ...this.#documents.keys()];
  }

  has(path: string): boolean {
    return path === "/api" || this.#documents.has(path);
  }

  answer(path: string, context: RequestContext): HttpResponse {
    const { accept, "if-none-match": ifNoneMatch } = context.request.headers;
    const aggregated = this.#aggregated.get(path);
    const chosen = negotiate(accept, OFFERS, (offer, params) => {
      if (params.as === undefined) return true;
      return aggregated !== undefined && offer.mediaType !== YAML && isAggregated(params);
    });
    if (chosen === undefined) {
      const form = negotiate(accept, OFFERS, () => true) !== undefined;
      throw form ? formNotAcceptable(ANSWERS) : notAcceptable(ANSWERS);
    }
    if (aggregated !== undefined && chosen.params.as !== undefined) {
      return fresh(aggregated, chosen.offer, ifNoneMatch);
    }
    const document = path === "/api" ? documentOf(this.#versionsDocument()) : this.#documents.get(path);
    if (document === undefined) throw new Error(`Cannot answer discovery of ${path}: it is not served`);
    const body = bodyOf(document, chosen.offer);
    const { mediaType } = chosen.offer;
    if (mediaType !== "application/json" || !isPretty(context)) return bytesResponse(200, mediaType, body);
    return bytesResponse(
      200,
      mediaType,
      Buffer.from(JSON.stringify(JSON.parse(document.json.toString()), undefined, 2)),
    );
  }

  #versionsDocument(): Described {
    const versions = this.#versions.filter(({ group }) => group === "").map(({ version }) => version);
    const serverAddressByClientCIDRs = [{ clientCIDR: "0.0.0.0/0", serverAddress: this.#address() }];
    return { kind: "APIVersions", versions, serverAddressByClientCIDRs };
  }

  #groups() {
    const names = [...new Set(this.#versions.map(({ group }) => group))].filter((group) => group !== "");
    return names.map((name) => {
      const versions = this.#versions
        .filter(({ group }) => group === name)
        .map(({ version }) => ({ groupVersion: formatApiVersion(name, version), version }));
      return { name, versions, preferredVersion: versions[0]! };
    });
  }

  /** Whether the group is announced in another spelling as well, and before this one. */
  #isSecondSpelling(name: string): boolean {
    const other = kubernetesGroup(name);
    return other !== name && this.#versions.some(({ group }) => group === other);
  }

  #put(path: string, value: Described): void {
    this.#documents.set(path, documentOf(value));
  }

  #aggregate(path: string, belongs: (group: string) => boolean): void {
    const groups = [...new Set(this.#versions.map(({ group }) => group))].filter(belongs);
    const items = groups.map((name) => ({
      metadata: { ...(name === "" ? {} : { name }), creationTimestamp: null },
      versions: this.#versions
        .filter(({ group }) => group === name)
        .map((served) => aggregatedVersion(served, this.#isSecondSpelling(name))),
    }));
    const apiVersion = "apidiscovery.k8s.io/v2";
    const document = documentOf({ kind: "APIGroupDiscoveryList", apiVersion, metadata: {}, items });
    const etag = `"${createHash("sha512").update(document.json).digest("hex").toUpperCase()}"`;
    this.#aggregated.set(path, { document, etag });
  }
}

function isAggregated({ as, g, v }: Readonly<Record<string, string>>): boolean {
  return as === "APIGroupDiscoveryList" && kubernetesGroup(g ?? "") === "apidiscovery.k8s.io" && v === "v2";
}

function fresh({ document, etag }: Aggregated, offer: Offer, ifNoneMatch: string | undefined): HttpResponse {
  const headers = { etag, "cache-control": "public", vary: "Accept" };
  if (ifNoneMatch === etag) return { status: 304, headers, body: new Uint8Array() };
  return bytesResponse(200, `${offer.mediaType};${AGGREGATED}`, bodyOf(document, offer), headers);
}

function bodyOf(document: Document, { mediaType, magic }: Offer): Uint8Array {
  if (mediaType === "application/json") return document.json;
  return mediaType === YAML ? document.yaml() : document.protobuf(magic);
}

function versionsOf(scheme: Scheme, aliases: boolean): readonly ServedVersion[] {
  const versions = new Map<string, ServedVersion & { kinds: Kind[] }>();
  for (const kind of scheme.kinds()) {
    // Kubernetes' spelling first: clients that know its groups by name do more for them than for strange ones.
    for (const group of spellings(kind.group, aliases).toReversed()) {
      const key = formatApiVersion(group, kind.version);
      let served = versions.get(key);
      if (served === undefined) {
        served = { group, version: kind.version, kinds: [], aliases };
        versions.set(key, served);
      }
      served.kinds.push(kind);
    }
  }
  return [...versions.values()];
}

function pathOf({ group, version }: ServedVersion): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

function resourceList({ group, version, kinds, aliases }: ServedVersion): Described {
  const listed = (some: readonly Kind[]) =>
    some.flatMap((kind) => [resourceOf(kind, group), ...subresourcesOf(kind, aliases)]);
  const resources = listed(kinds.filter(({ custom }) => custom !== true));
  resources.sort((a, b) => (a.name < b.name ? -1 : 1));
  resources.push(...listed(kinds.filter(({ custom }) => custom === true)));
  // The oldest list of all does not say its own version.
  const own = group === "" ? {} : { apiVersion: "v1" };
  return { kind: "APIResourceList", ...own, groupVersion: formatApiVersion(group, version), resources };
}

function resourceOf(kind: Kind, group: string) {
  return {
    name: kind.plural,
    singularName: kind.singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs: verbsOf(kind),
    ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
    ...(!isPersisted(kind) ? {} : { storageVersionHash: storageVersionHash(kind, group) }),
  };
}

/** In the order in which Kubernetes tells them. */
function verbsOf({ custom, verbs }: Kind): string[] {
  if (custom !== true) return [...verbs].sort();
  return ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
}

function subresourcesOf(kind: Kind, aliases: boolean) {
  return kind.subresources.map((subresource) => ({
    name: `${kind.plural}/${subresource.name}`,
    singularName: "",
    namespaced: kind.namespaced,
    ...(subresource.group === undefined
      ? {}
      : { group: announced(subresource.group, aliases), version: subresource.version }),
    kind: subresource.kind,
    verbs: [...subresource.verbs].sort() as string[],
  }));
}

/** Of a group that the path does not spell, the spelling that clients know. */
function announced(group: string, aliases: boolean): string {
  return aliases ? kubernetesGroup(group) : group;
}

/** First eight bytes of the SHA-256 of `group/version/kind` of what is stored. */
function storageVersionHash(kind: Kind, spelling: string): string {
  const stored = storageKindOf(kind);
  const group = spelling === kubernetesGroup(kind.group) ? kubernetesGroup(stored.group) : stored.group;
  const text = `${group}/${stored.storageVersion ?? stored.version}/${stored.kind}`;
  return createHash("sha256").update(text).digest().subarray(0, 8).toString("base64");
}

/** Of two spellings one has short names and categories: kubectl warns of short names that stand for two resources. */
function aggregatedVersion({ group, version, kinds, aliases }: ServedVersion, isSecondSpelling: boolean) {
  const resources = kinds.map((kind) => {
    // Nothing stands for the group and version around it; custom resources are told in full.
    const own = kind.custom === true ? { group, version } : { group: "", version: "" };
    const subresources = kind.subresources.map(({ name, kind: shown, verbs, ...other }) => ({
      subresource: name,
      responseKind: {
        group: other.group === undefined ? own.group : announced(other.group, aliases),
        version: other.version ?? own.version,
        kind: shown,
      },
      verbs: [...verbs].sort(),
    }));
    return {
      resource: kind.plural,
      responseKind: { ...own, kind: kind.kind },
      scope: kind.namespaced ? "Namespaced" : "Cluster",
      singularResource: kind.singular,
      verbs: verbsOf(kind),
      ...(isSecondSpelling || kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
      ...(isSecondSpelling || kind.categories.length === 0 ? {} : { categories: kind.categories }),
      ...(subresources.length === 0 ? {} : { subresources }),
    };
  });
  resources.sort((a, b) => (a.resource < b.resource ? -1 : 1));
  return { version, resources, freshness: "Current" };
}
