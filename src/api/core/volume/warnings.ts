/** Warnings about volumes: removed drivers, overlapping paths of files. */
import { child, index } from "../../../schema/value/field-path.ts";
import { persistentVolumeClaimSpecWarnings } from "../persistent-volume-claim/warnings.ts";
import type { Volume } from "./schema.ts";

export function volumeWarnings(volumes: readonly Volume[], path: string): readonly string[] {
  return [
    ...volumes.flatMap((volume, i) => [
      ...removedDriverWarnings(volume, index(path, i)),
      ...claimWarnings(volume, index(path, i)),
    ]),
    ...volumes.flatMap(overlapWarnings),
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

function overlapWarnings(volume: Volume): string[] {
  const { name, configMap, secret, downwardAPI, projected } = volume;
  const warn = (source: string, what: string): string => `volume "${name}" (${source}): overlapping paths: ${what}`;
  const plain = (files: Files, source: string): string[] =>
    findOverlaps((files.items ?? []).map(({ path }) => ({ path, source: "" }))).map((found) => warn(source, found));
  const warnings: string[] = [];
  if (configMap !== undefined) warnings.push(...plain(configMap, `ConfigMap "${configMap.name ?? ""}"`));
  if (secret !== undefined) warnings.push(...plain(secret, `Secret "${secret.secretName ?? ""}"`));
  if (downwardAPI !== undefined) warnings.push(...plain(downwardAPI, "DownwardAPI"));
  if (projected === undefined) return warnings;
  const sources = projected.sources ?? [];
  const empty = sources.filter((source) => Object.keys(source).length === 0);
  return [
    ...warnings,
    ...empty.map(() => `volume "${name}" (Projected) has no sources provided`),
    ...findOverlaps(projectedPaths(sources)).map((found) => warn("Projected", found)),
  ];
}

interface Files {
  readonly items?: readonly { readonly path: string }[] | undefined;
}

type Source = NonNullable<NonNullable<Volume["projected"]>["sources"]>[number];

/** A source without items counts the paths of the source before it again, as in Kubernetes. */
function projectedPaths(sources: readonly Source[]): readonly FilePath[] {
  let last: readonly FilePath[] = [];
  return sources.flatMap((source) => {
    if (Object.keys(source).length === 0) return [];
    last = pathsOf(source) ?? last;
    return last;
  });
}

function pathsOf({ configMap, secret, downwardAPI, serviceAccountToken, clusterTrustBundle }: Source) {
  const of = (files: Files, source: string): FilePath[] => (files.items ?? []).map(({ path }) => ({ path, source }));
  if (configMap?.items !== undefined) return of(configMap, `ConfigMap "${configMap.name ?? ""}"`);
  if (secret?.items !== undefined) return of(secret, `Secret "${secret.name ?? ""}"`);
  if (downwardAPI !== undefined) return of(downwardAPI, "DownwardAPI");
  if (serviceAccountToken !== undefined) return [{ path: serviceAccountToken.path, source: "ServiceAccountToken" }];
  if (clusterTrustBundle === undefined) return undefined;
  const { name, signerName = "", path } = clusterTrustBundle;
  return [{ path, source: `ClusterTrustBundle "${name ?? signerName}"` }];
}

/** The maximum number of paths to compare pairwise; more get no warning. */
const COMPARED_PATHS_MAX = 500;

/** The paths that equal another path or lie within it. */
function findOverlaps(paths: readonly FilePath[]): readonly string[] {
  if (paths.length > COMPARED_PATHS_MAX) return [];
  const bare = paths.map(({ path, source }) => ({ path: path.replace(/(?<!\/)\/+$/, ""), source }));
  return bare.flatMap((one, i) =>
    bare
      .slice(0, i)
      .filter(({ path }) => `${path}/`.startsWith(`${one.path}/`) || `${one.path}/`.startsWith(`${path}/`))
      .map((other) => `${formatFilePath(one)} with ${formatFilePath(other)}`),
  );
}

function formatFilePath({ path, source }: FilePath): string {
  return source === "" ? JSON.stringify(path) : `${JSON.stringify(path)} (${source})`;
}
