/** The archives of images that `svc up` imports. */
import { join } from "node:path";
import { type Finding, finding, findingOf } from "./finding.ts";
import type { HostReader } from "./host-reader.ts";
import type { ImagesSubject } from "./subject.ts";

export interface ImageDirFacts {
  /** Undefined: the directory does not exist. */
  readonly archives: readonly { readonly path: string; readonly isReadable: boolean }[] | undefined;
  /** The names of the images in the archives that were imported. */
  readonly imported: readonly string[];
}

/** `missing`: those of the imported images that the runtime lacks; undefined: unknown. */
export function checkImages(
  { directory, isSet }: ImagesSubject,
  { archives, imported }: ImageDirFacts,
  missing: readonly string[] | undefined,
): readonly Finding[] {
  if (archives === undefined) {
    const found = `${directory} is not a directory`;
    return [isSet ? finding("image-dir", "error", found) : finding("image-dir", "ok", `${found}; no images to import`)];
  }
  const broken = archives.filter(({ isReadable }) => !isReadable).map(({ path }) => path);
  return [
    findingOf(
      "image-dir",
      `${directory}: ${archives.length} archives`,
      broken.length > 0 ? `${broken.join(", ")}: empty, or cannot be read` : undefined,
      "warning",
    ),
    ...(missing === undefined || imported.length === 0
      ? []
      : [
          findingOf(
            "images-imported",
            `${imported.length} images`,
            missing.length > 0 ? `the runtime lacks ${missing.join(", ")}` : undefined,
            "warning",
          ),
        ]),
  ];
}

export async function readImageDir(host: HostReader, { directory, recordFile }: ImagesSubject): Promise<ImageDirFacts> {
  const names = (await host.list(directory))?.filter((name) => name.endsWith(".tar"));
  const archives = names && (await Promise.all(names.map((name) => readArchive(host, join(directory, name)))));
  return { archives, imported: parseRecords(await host.readText(recordFile)) };
}

async function readArchive(host: HostReader, path: string): Promise<{ path: string; isReadable: boolean }> {
  const found = await host.stat(path);
  return { path, isReadable: found?.kind === "file" && found.bytes > 0 };
}

/** The record of `svc up`: by archive, with the names of its images. */
function parseRecords(text: string | undefined): readonly string[] {
  try {
    const records = JSON.parse(text ?? "{}") as Readonly<Record<string, { readonly names?: readonly string[] }>>;
    return Object.values(records).flatMap(({ names }) => names ?? []);
  } catch {
    return [];
  }
}
