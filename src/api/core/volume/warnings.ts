/** Warnings about volumes: removed drivers, overlapping paths of files. */
import { child, index } from "../../../schema/value/field-path.ts";
import { goQuote } from "../../../schema/value/go-quote.ts";
import { takeSendableWarnings } from "../../meta/warning-limits.ts";
import { persistentVolumeClaimSpecWarnings } from "../persistent-volume-claim/warnings.ts";
import type { Volume } from "./schema.ts";

export function volumeWarnings(volumes: readonly Volume[], path: string): readonly string[] {
  return [
    ...volumes.flatMap((volume, i) => [
      ...removedDriverWarnings(volume, index(path, i)),
      ...claimWarnings(volume, index(path, i)),
    ]),
    ...takeSendableWarnings(allOverlapWarnings(volumes)),
  ];
}

/** The field, the driver's name in the warning, and the release that removed it. */
const removedDrivers: readonly (readonly [string, string, string])[] = [
  ["photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"],
  ["gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"],
  ["scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"],
  ["flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"],
  ["storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"],
  ["quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"],
  ["glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"],
  ["cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"],
  ["rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"],
];

export function removedDriverWarnings(volume: Readonly<Record<string, unknown>>, path: string): readonly string[] {
  return removedDrivers
    .filter(([source]) => volume[source] !== undefined)
    .map(([, field, why]) => `${child(path, field)}: ${why}`);
}

function claimWarnings({ ephemeral }: Volume, path: string): readonly string[] {
  const template = ephemeral?.volumeClaimTemplate;
  const at = child(path, "ephemeral.volumeClaimTemplate.spec");
  return template === undefined ? [] : persistentVolumeClaimSpecWarnings(template.spec, at);
}

interface FilePath {
  readonly path: string;
  readonly source: string;
}

function* overlapWarnings({ name, configMap, secret, downwardAPI, projected }: Volume): Generator<string> {
  const warn = (source: string, what: string): string => `volume "${name}" (${source}): overlapping paths: ${what}`;
  function* plain(files: Files | undefined, source: string): Generator<string> {
    const paths = (files?.items ?? []).map(({ path }) => ({ path, source: "" }));
    for (const found of findOverlaps(paths)) yield warn(source, found);
  }
  yield* plain(configMap, `ConfigMap "${configMap?.name ?? ""}"`);
  yield* plain(secret, `Secret "${secret?.secretName ?? ""}"`);
  yield* plain(downwardAPI, "DownwardAPI");
  const sources = projected?.sources ?? [];
  for (const source of sources) {
    if (Object.keys(source).length === 0) yield `volume "${name}" (Projected) has no sources provided`;
  }
  for (const found of findOverlaps(projectedPaths(sources))) yield warn("Projected", found);
}

/** The paths of few enough volumes to compare them all. */
function* allOverlapWarnings(volumes: readonly Volume[]): Generator<string> {
  let compared = 0;
  for (const volume of volumes) {
    compared += countPaths(volume);
    if (compared > COMPARED_PATHS_MAX) return;
    yield* overlapWarnings(volume);
  }
}

function countPaths({ configMap, secret, downwardAPI, projected }: Volume): number {
  const files = [configMap, secret, downwardAPI].reduce((sum, each) => sum + (each?.items?.length ?? 0), 0);
  return files + (projected === undefined ? 0 : projectedPaths(projected.sources ?? []).length);
}

interface Files {
  readonly items?: readonly { readonly path: string }[] | undefined;
}

type Source = NonNullable<NonNullable<Volume["projected"]>["sources"]>[number];

/**
 * A source without items counts the paths of the source before it again, as in Kubernetes. Stops beyond the paths that
 * are compared, of which a few sources can repeat millions.
 */
function projectedPaths(sources: readonly Source[]): readonly FilePath[] {
  const paths: FilePath[] = [];
  let last: readonly FilePath[] = [];
  for (const source of sources) {
    if (Object.keys(source).length === 0) continue;
    last = pathsOf(source) ?? last;
    for (const each of last) if (paths.length <= COMPARED_PATHS_MAX) paths.push(each);
    if (paths.length > COMPARED_PATHS_MAX) break;
  }
  return paths;
}

function pathsOf({ configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle }: Source) {
  const of = (files: Files, source: string): FilePath[] => (files.items ?? []).map(({ path }) => ({ path, source }));
  if (configMap?.items !== undefined) return of(configMap, `ConfigMap ${goQuote(configMap.name ?? "")}`);
  if (secret?.items !== undefined) return of(secret, `Secret ${goQuote(secret.name ?? "")}`);
  if (downwardAPI !== undefined) return of(downwardAPI, "DownwardAPI");
  if (serviceAccountToken !== undefined) return [{ path: serviceAccountToken.path, source: "ServiceAccountToken" }];
  if (clusterTrustBundle === undefined) return undefined;
  const { name, signerName = "", path } = clusterTrustBundle;
  return [{ path, source: `ClusterTrustBundle ${goQuote(name ?? signerName)}` }];
}

/** The maximum number of paths to compare pairwise, and of their characters; more get no warning. */
const COMPARED_PATHS_MAX = 500;
const COMPARED_CHARACTERS_MAX = 64 * 1024;

/** The paths that equal another path or lie within it. */
function* findOverlaps(paths: readonly FilePath[]): Generator<string> {
  const characters = paths.reduce((sum, { path }) => sum + path.length, 0);
  if (paths.length > COMPARED_PATHS_MAX || characters > COMPARED_CHARACTERS_MAX) return;
  const bare = paths.map(({ path, source }) => ({ path: path.replace(/(?<!\/)\/+$/, ""), source }));
  for (const [i, one] of bare.entries()) {
    for (const other of bare.slice(0, i)) {
      const overlaps = `${other.path}/`.startsWith(`${one.path}/`) || `${one.path}/`.startsWith(`${other.path}/`);
      if (overlaps) yield `${formatFilePath(one)} with ${formatFilePath(other)}`;
    }
  }
}

function formatFilePath({ path, source }: FilePath): string {
  return source === "" ? goQuote(path) : `${goQuote(path)} (${source})`;
}
