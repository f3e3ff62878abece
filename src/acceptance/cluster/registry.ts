/** A registry on loopback with one image, which requires basic authentication. */
import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";

export interface ImageRegistry extends AsyncDisposable {
  /** `127.0.0.1:40123` */
  readonly host: string;
  /** Usernames of the authenticated requests. */
  readonly served: ReadonlySet<string>;
}

/** `archive` is a tar file in the OCI image layout, with one manifest. */
export async function startRegistry(archive: Buffer, user: string, password: string): Promise<ImageRegistry> {
  const files = filesOf(archive);
  const index = JSON.parse(String(files.get("index.json"))) as { manifests: [{ digest: string }] };
  const blob = (digest: string) => files.get(`blobs/${digest.replace(":", "/")}`);
  const served = new Set<string>();
  const server = createServer((request, response) => {
    const shown = Buffer.from(/^Basic (.*)$/.exec(request.headers.authorization ?? "")?.[1] ?? "", "base64").toString();
    if (shown !== `${user}:${password}`) {
      response.writeHead(401, { "www-authenticate": 'Basic realm="test"' }).end('{"errors":[{"code":"UNAUTHORIZED"}]}');
      return;
    }
    served.add(user);
    const [, kind = "", name = ""] = /\/(manifests|blobs)\/([^/]+)$/.exec(request.url ?? "") ?? [];
    const digest = kind === "manifests" && !name.startsWith("sha256:") ? index.manifests[0].digest : name;
    const content = kind === "" ? Buffer.from("{}") : blob(digest);
    if (content === undefined) return void response.writeHead(404).end();
    const type = kind === "manifests" ? MANIFEST : "application/octet-stream";
    const etag = `sha256:${createHash("sha256").update(content).digest("hex")}`;
    response.writeHead(200, {
      "content-type": type,
      "content-length": content.length,
      "docker-content-digest": etag,
    });
    response.end(request.method === "HEAD" ? undefined : content);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    served,
    [Symbol.asyncDispose]: () => closed(server),
  };
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}

/** Files of a tar archive, by path. */
function filesOf(archive: Buffer): ReadonlyMap<string, Buffer> {
  const files = new Map<string, Buffer>();
  const text = (at: number, length: number) => archive.toString("latin1", at, at + length).replace(/\0.*$/s, "");
  for (let at = 0; at < archive.length && text(at, 100) !== ""; ) {
    const size = Number.parseInt(text(at + 124, 12), 8);
    files.set(text(at, 100), archive.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return files;
}
