/**
 * Builds a container image as a tar file in the OCI image layout, which `ctr images import` reads, from files in
 * memory: a host needs neither a registry nor a builder for it.
 */
import { createHash } from "node:crypto";
import { type TarEntry, tar } from "./tar.ts";

/** The architecture in OCI's notation. */
export type Architecture = "amd64" | "arm64";

export interface ImageSpec {
  /** With its tag: `svc.local/pause:1`. */
  readonly name: string;
  readonly architecture: Architecture;
  /** The files of the only layer; directories come before their content. */
  readonly files: readonly TarEntry[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: readonly string[];
  readonly user?: string;
  readonly workingDirectory?: string;
  readonly stopSignal?: NodeJS.Signals;
  readonly volumes?: readonly string[];
}

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
const LAYER = "application/vnd.oci.image.layer.v1.tar";

interface Blob {
  readonly digest: string;
  readonly content: Buffer;
}

export function ociArchive(image: ImageSpec): Buffer {
  const layer = blob(tar(image.files));
  const config = jsonBlob({
    architecture: image.architecture,
    os: "linux",
    config: {
      ...(image.entrypoint === undefined ? {} : { Entrypoint: image.entrypoint }),
      ...(image.command === undefined ? {} : { Cmd: image.command }),
      Env: image.environment ?? ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
      ...(image.user === undefined ? {} : { User: image.user }),
      ...(image.stopSignal === undefined ? {} : { StopSignal: image.stopSignal }),
      ...(image.volumes === undefined ? {} : { Volumes: Object.fromEntries(image.volumes.map((path) => [path, {}])) }),
      WorkingDir: image.workingDirectory ?? "/",
    },
    rootfs: { type: "layers", diff_ids: [layer.digest] },
    history: [{ created_by: "svc" }],
  });
  const manifest = jsonBlob({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: descriptor(CONFIG, config),
    layers: [descriptor(LAYER, layer)],
  });
  const index = {
    schemaVersion: 2,
    manifests: [
      {
        ...descriptor(MANIFEST, manifest),
        annotations: { "io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": image.name },
      },
    ],
  };
  return tar([
    { path: "blobs" },
    { path: "blobs/sha256" },
    ...[layer, config, manifest].map(({ digest, content }) => ({
      path: `blobs/${digest.replace(":", "/")}`,
      data: content,
    })),
    { path: "index.json", data: Buffer.from(JSON.stringify(index)) },
    { path: "oci-layout", data: Buffer.from('{"imageLayoutVersion":"1.0.0"}') },
  ]);
}

function blob(content: Buffer): Blob {
  return { digest: `sha256:${createHash("sha256").update(content).digest("hex")}`, content };
}

function jsonBlob(value: unknown): Blob {
  return blob(Buffer.from(JSON.stringify(value)));
}

function descriptor(mediaType: string, { digest, content }: Blob) {
  return { mediaType, digest, size: content.length };
}
