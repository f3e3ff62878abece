/** Discovery: the groups, versions and resources that the server serves. */
import { createHash } from "node:crypto";
import { type GroupAliases, groupNames, listedGroupNames } from "../../api/group-aliases.ts";
import { type Kind, storageKindOf } from "../../api/kind.ts";
import { isPersisted } from "../../api/review-kind.ts";
import { formatApiVersion, kubernetesGroup, type Scheme } from "../../api/scheme.ts";
import type { HttpResponse } from "../../http/message.ts";
import { acceptsExactly, negotiate } from "../../http/negotiate.ts";
import { bytesResponse } from "../../http/respond.ts";
import type { RequestContext } from "../request/request-context.ts";
import {
  acceptsPlain,
  acceptsStream,
  isPretty,
  notAcceptable,
  transformNotAcceptable,
} from "../responses/status-response.ts";
import { createDocument, type DiscoveryDocument, type DiscoveryObject } from "./discovery-documents.ts";
import type { ExternalDiscovery, ExternalVersion } from "./external-discovery.ts";
import { priorityOf } from "./local-api-services.ts";
import { mergeVersions } from "./merge-groups.ts";

interface ServedVersion {
  readonly group: string;
  readonly version: string;
  readonly kinds: readonly Kind[];
  readonly aliases: GroupAliases;
}

interface AggregatedDocument {
  readonly document: DiscoveryDocument;
  readonly version: string;
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
/** The media types in 406 messages, without the project's own protobuf type. */
const ADVERTISED_TYPES = OFFERS.slice(0, 3).map((offer) => offer.mediaType);

/** What feature gates change in discovery. */
export interface DiscoveryFeatures {
  /** Serves aggregated discovery as v2beta1 too, while the gate AggregatedDiscoveryRemoveBetaType is off. */
  readonly betaAggregated: boolean;
  /** The gate StorageVersionHash. */
  readonly storageHashes: boolean;
}

const defaultDiscoveryFeatures: DiscoveryFeatures = { betaAggregated: false, storageHashes: true };

/** Discovery documents, created on first use and again after the kinds have changed. */
export class Discovery {
  readonly #scheme: Scheme;
  readonly #aliases: GroupAliases;
  readonly #address: () => string;
  readonly #external: ExternalDiscovery;
  readonly #features: DiscoveryFeatures;
  #cached: { readonly changes: string; readonly pages: DiscoveryDocuments } | undefined;

  /** `address` returns the host and port that clients connect to: `10.0.0.1:6443`. */
  constructor(
    scheme: Scheme,
    aliases: GroupAliases,
    address: () => string,
    external: ExternalDiscovery = { changeCount: 0, versions: () => [] },
    features: DiscoveryFeatures = defaultDiscoveryFeatures,
  ) {
    this.#features = features;
    this.#scheme = scheme;
    this.#aliases = aliases;
    this.#address = address;
    this.#external = external;
  }

  /** All paths of discovery documents. */
  paths(): readonly string[] {
    return this.#current().paths();
  }

  has(path: string): boolean {
    return this.#current().has(path);
  }

  /** Throws a 406 when the client accepts none of the media types. */
  respond(path: string, context: RequestContext): HttpResponse {
    return this.#current().respond(path, context);
  }

  #current(): DiscoveryDocuments {
    const changes = `${this.#scheme.changeCount} ${this.#external.changeCount}`;
    if (this.#cached?.changes !== changes) {
      const versions = servedVersions(this.#scheme, this.#aliases);
      const listed = new Set(this.#scheme.kinds().flatMap((kind) => listedGroupNames(kind, this.#aliases)));
      const external = this.#external.versions();
      const pages = new DiscoveryDocuments(versions, listed, external, this.#address, this.#features);
      this.#external.onAggregate?.();
      this.#cached = { changes, pages };
    }
    return this.#cached.pages;
  }
}

class DiscoveryDocuments {
  readonly #versions: readonly (ServedVersion | ExternalVersion)[];
  readonly #documents = new Map<string, DiscoveryDocument>();
  /** By version and path: `v2/apis`. */
  readonly #aggregated = new Map<string, AggregatedDocument>();
  readonly #address: () => string;

  /** `listed`: the names of the local groups in the list of groups. */
  constructor(
    local: readonly ServedVersion[],
    listed: ReadonlySet<string>,
    external: readonly ExternalVersion[],
    address: () => string,
    features: DiscoveryFeatures,
  ) {
    this.#versions = mergeVersions(local, external, priorityOf);
    const groups = this.#groups();
    const isListed = (name: string): boolean => listed.has(name) || external.some(({ group }) => group === name);
    const listedGroups = groups.filter(({ name }) => isListed(name));
    this.addDocument("/apis", { kind: "APIGroupList", apiVersion: "v1", groups: listedGroups });
    for (const group of groups)
      this.addDocument(`/apis/${group.name}`, { kind: "APIGroup", apiVersion: "v1", ...group });
    for (const served of this.#versions) {
      if (isServed(served)) this.addDocument(versionPath(served), resourceList(served, features));
    }
    for (const version of features.betaAggregated ? ["v2", "v2beta1"] : ["v2"]) {
      this.#aggregate(version, "/api", (group) => group === "");
      this.#aggregate(version, "/apis", (group) => group !== "" && isListed(group));
    }
    this.#address = address;
  }

  paths(): readonly string[] {
    return ["/api", ...this.#documents.keys()];
  }

  has(path: string): boolean {
    return path === "/api" || this.#documents.has(path);
  }

  respond(path: string, context: RequestContext): HttpResponse {
    const { accept, "if-none-match": ifNoneMatch } = context.request.headers;
    // For these documents Kubernetes compares whole media types first.
    if (!isGroupPath(path) && !acceptsExactly(accept, OFFERS)) throw notAcceptable(ADVERTISED_TYPES);
    const match = negotiate(accept, OFFERS, (offer, params) => {
      if (acceptsPlain(offer, params)) return true;
      const isOffered = offer.mediaType !== YAML && acceptsStream(offer, params) && params.sv === undefined;
      return isOffered && isAggregated(params) && this.#aggregated.has(`${params.v}${path}`);
    });
    if (match === undefined) throw transformNotAcceptable(ADVERTISED_TYPES);
    const aggregated = match.params.as === undefined ? undefined : this.#aggregated.get(`${match.params.v}${path}`);
    if (aggregated !== undefined) {
      if (ifNoneMatch !== aggregated.etag) context.audit?.setResponse(() => aggregated.document.json.toString());
      return respondAggregated(aggregated, match.offer, ifNoneMatch);
    }
    const document = path === "/api" ? createDocument(this.#versionsDocument()) : this.#documents.get(path);
    if (document === undefined) throw new Error(`Cannot serve discovery of ${path}: it is not served`);
    context.audit?.setResponse(() => document.json.toString());
    const body = encodeDocument(document, match.offer);
    const { mediaType } = match.offer;
    if (mediaType !== "application/json" || !isPretty(context)) return bytesResponse(200, mediaType, body);
    return bytesResponse(
      200,
      mediaType,
      Buffer.from(JSON.stringify(JSON.parse(document.json.toString()), undefined, 2)),
    );
  }

  #versionsDocument(): DiscoveryObject {
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

  /** Whether the group is the project's name of a group that is also served under Kubernetes' name. */
  #isAliasOfKubernetesGroup(name: string): boolean {
    const other = kubernetesGroup(name);
    return other !== name && this.#versions.some(({ group }) => group === other);
  }

  addDocument(path: string, value: DiscoveryObject): void {
    this.#documents.set(path, createDocument(value));
  }

  #aggregate(version: string, path: string, belongs: (group: string) => boolean): void {
    // An API service without a server is in the list of groups only.
    const aggregated = this.#versions.filter((each) => isServed(each) || each.discovered !== undefined);
    const groups = [...new Set(aggregated.map(({ group }) => group))].filter(belongs);
    const items = groups.map((name) => ({
      metadata: { ...(name === "" ? {} : { name }), creationTimestamp: null },
      versions: aggregated
        .filter(({ group }) => group === name)
        .map((served) =>
          isServed(served) ? aggregatedVersion(served, this.#isAliasOfKubernetesGroup(name)) : externalVersion(served),
        ),
    }));
    const apiVersion = `apidiscovery.k8s.io/${version}`;
    const document = createDocument({ kind: "APIGroupDiscoveryList", apiVersion, metadata: {}, items });
    const etag = `"${createHash("sha512").update(document.json).digest("hex").toUpperCase()}"`;
    this.#aggregated.set(`${version}${path}`, { document, etag, version });
  }
}

function externalVersion({ version, discovered }: ExternalVersion) {
  const { resources = [], freshness } = discovered ?? {};
  return { version, ...(resources.length === 0 ? {} : { resources }), freshness };
}

function isServed(version: ServedVersion | ExternalVersion): version is ServedVersion {
  return "kinds" in version;
}

/** `/apis` and `/apis/GROUP`. */
function isGroupPath(path: string): boolean {
  return /^\/apis(?:\/[^/]+)?$/.test(path);
}

function isAggregated({ as, g }: Readonly<Record<string, string>>): boolean {
  return as === "APIGroupDiscoveryList" && kubernetesGroup(g ?? "") === "apidiscovery.k8s.io";
}

function respondAggregated(
  { document, etag, version }: AggregatedDocument,
  offer: Offer,
  ifNoneMatch: string | undefined,
): HttpResponse {
  const headers = { etag, "cache-control": "public", vary: "Accept" };
  if (ifNoneMatch === etag) return { status: 304, headers, body: new Uint8Array() };
  const mediaType = `${offer.mediaType};g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
  return bytesResponse(200, mediaType, encodeDocument(document, offer), headers);
}

function encodeDocument(document: DiscoveryDocument, { mediaType, magic }: Offer): Uint8Array {
  if (mediaType === "application/json") return document.json;
  return mediaType === YAML ? document.yaml() : document.protobuf(magic);
}

function servedVersions(scheme: Scheme, aliases: GroupAliases): readonly ServedVersion[] {
  const versions = new Map<string, ServedVersion & { kinds: Kind[] }>();
  for (const kind of scheme.kinds()) {
    // Kubernetes' group name first: clients have special support for its groups.
    for (const group of groupNames(kind.group, aliases).toReversed()) {
      const key = formatApiVersion(group, kind.version);
      let served = versions.get(key);
      if (served === undefined) {
        served = { group, version: kind.version, kinds: [], aliases };
        versions.set(key, served);
      }
      served.kinds.push(scheme.published(kind));
    }
  }
  return [...versions.values()];
}

function versionPath({ group, version }: ServedVersion): string {
  return group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
}

function resourceList({ group, version, kinds, aliases }: ServedVersion, features: DiscoveryFeatures): DiscoveryObject {
  const listed = (some: readonly Kind[]) =>
    some.flatMap((kind) => [apiResource(kind, group, features), ...apiSubresources(kind, aliases)]);
  const resources = listed(kinds.filter(({ custom }) => custom !== true));
  resources.sort((a, b) => (a.name < b.name ? -1 : 1));
  resources.push(...listed(kinds.filter(({ custom }) => custom === true)));
  // As in Kubernetes, the list of the core group has no apiVersion.
  const own = group === "" ? {} : { apiVersion: "v1" };
  return { kind: "APIResourceList", ...own, groupVersion: formatApiVersion(group, version), resources };
}

function apiResource(kind: Kind, group: string, { storageHashes }: DiscoveryFeatures) {
  return {
    name: kind.plural,
    singularName: kind.singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs: discoveryVerbs(kind),
    ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
    ...(!storageHashes || !isPersisted(kind) ? {} : { storageVersionHash: storageVersionHash(kind, group) }),
  };
}

/** In Kubernetes' order. */
function discoveryVerbs({ custom, verbs }: Kind): string[] {
  if (custom !== true) return [...verbs].sort();
  return ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
}

function apiSubresources(kind: Kind, aliases: GroupAliases) {
  return kind.subresources.map((subresource) => ({
    name: `${kind.plural}/${subresource.name}`,
    singularName: "",
    namespaced: kind.namespaced,
    ...(subresource.group === undefined
      ? {}
      : { group: clientGroup(subresource.group, aliases), version: subresource.version }),
    kind: subresource.kind,
    verbs: [...subresource.verbs].sort() as string[],
  }));
}

/** Kubernetes' name of a group that is not part of the path. */
function clientGroup(group: string, aliases: GroupAliases): string {
  return aliases.served ? kubernetesGroup(group) : group;
}

/** The first eight bytes of the SHA-256 of `group/version/kind` of the storage version. */
function storageVersionHash(kind: Kind, groupName: string): string {
  const stored = storageKindOf(kind);
  const group = groupName === kubernetesGroup(kind.group) ? kubernetesGroup(stored.group) : stored.group;
  const text = `${group}/${stored.storageVersion ?? stored.version}/${stored.kind}`;
  return createHash("sha256").update(text).digest().subarray(0, 8).toString("base64");
}

/** Only one of two group names has short names and categories: kubectl warns about ambiguous short names. */
function aggregatedVersion({ group, version, kinds, aliases }: ServedVersion, isAlias: boolean) {
  const resources = kinds.map((kind) => {
    // Built-in kinds leave out the group and version of the document; custom resources repeat them, as in Kubernetes.
    const own = kind.custom === true ? { group, version } : { group: "", version: "" };
    const subresources = kind.subresources.map(({ name, kind: shown, verbs, ...other }) => ({
      subresource: name,
      responseKind: {
        group: other.group === undefined ? own.group : clientGroup(other.group, aliases),
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
      verbs: discoveryVerbs(kind),
      ...(isAlias || kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
      ...(isAlias || kind.categories.length === 0 ? {} : { categories: kind.categories }),
      ...(subresources.length === 0 ? {} : { subresources }),
    };
  });
  resources.sort((a, b) => (a.resource < b.resource ? -1 : 1));
  return { version, resources, freshness: "Current" };
}
