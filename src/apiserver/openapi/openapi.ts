/** The OpenAPI documents of the kinds served, made when first asked for. */
import { createHash } from "node:crypto";
import type { Scheme } from "../../api/scheme.ts";
import { HttpError } from "../../http/http-error.ts";
import type { HttpResponse } from "../../http/message.ts";
import { negotiate } from "../../http/negotiate.ts";
import { bytes } from "../../http/respond.ts";
import { spellings } from "../resources/routes.ts";
import { OpenApiDocument } from "./document.ts";
import { encodeGnostic } from "./gnostic.ts";

const V2_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

interface Encoded {
  readonly body: Buffer;
  readonly etag: string;
}

export class OpenApi {
  readonly #scheme: Scheme;
  readonly #aliases: boolean;
  readonly #gitVersion: string;
  readonly #encoded = new Map<string, Encoded>();

  constructor(scheme: Scheme, aliases: boolean, gitVersion: string) {
    this.#scheme = scheme;
    this.#aliases = aliases;
    this.#gitVersion = gitVersion;
  }

  /** `/openapi/v2`, in JSON or in the protobuf that older clients ask for. */
  v2(accept: string | undefined, ifNoneMatch: string | undefined): HttpResponse {
    // Clients write the type with an @, which no media type may have.
    const chosen = negotiate(accept?.replaceAll("v2@v1.0", "v2.v1.0"), [
      { mediaType: "application/json" },
      { mediaType: V2_PROTOBUF },
    ]);
    if (chosen === undefined) throw new HttpError(406, "NotAcceptable", "only JSON and protobuf are served here");
    const { mediaType } = chosen.offer;
    const encoded = this.#cached(`v2 ${mediaType}`, () => {
      const document = this.#document(2, () => true);
      return mediaType === V2_PROTOBUF ? encodeGnostic(document) : Buffer.from(JSON.stringify(document));
    });
    return answer(mediaType, encoded, ifNoneMatch);
  }

  /** `/openapi/v3`: where the document of each group version is. */
  root(): HttpResponse {
    const paths = Object.fromEntries(
      this.#groupVersions().map((path) => {
        const hash = encodeURIComponent(this.#v3(path).etag.slice(1, -1));
        return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }];
      }),
    );
    return bytes(200, "application/json", Buffer.from(JSON.stringify({ paths })));
  }

  /** `path` is `api/v1` or `apis/GROUP/VERSION`; undefined when there is no such group version. */
  v3(path: string, hash: string | null, ifNoneMatch: string | undefined): HttpResponse | undefined {
    if (!this.#groupVersions().includes(path)) return undefined;
    const encoded = this.#v3(path);
    const response = answer("application/json", encoded, ifNoneMatch);
    if (hash !== encoded.etag.slice(1, -1)) return response;
    return { ...response, headers: { ...response.headers, "cache-control": "public, immutable, max-age=31536000" } };
  }

  #v3(path: string): Encoded {
    return this.#cached(`v3 ${path}`, () => {
      const document = this.#document(3, (candidate) => candidate === path);
      return Buffer.from(JSON.stringify(document));
    });
  }

  #document(version: 2 | 3, belongs: (path: string) => boolean) {
    const document = new OpenApiDocument(version);
    for (const kind of this.#scheme.kinds()) {
      for (const group of spellings(kind.group, this.#aliases)) {
        if (belongs(pathOf(group, kind.version))) document.add(kind, group);
      }
    }
    return document.json(this.#gitVersion);
  }

  #groupVersions(): readonly string[] {
    const paths = this.#scheme
      .kinds()
      .flatMap((kind) => spellings(kind.group, this.#aliases).map((group) => pathOf(group, kind.version)));
    return [...new Set(paths)];
  }

  #cached(key: string, make: () => Uint8Array): Encoded {
    let encoded = this.#encoded.get(key);
    if (encoded === undefined) {
      const body = Buffer.from(make());
      encoded = { body, etag: `"${createHash("sha512").update(body).digest("hex").toUpperCase()}"` };
      this.#encoded.set(key, encoded);
    }
    return encoded;
  }
}

function pathOf(group: string, version: string): string {
  return group === "" ? `api/${version}` : `apis/${group}/${version}`;
}

function answer(mediaType: string, { body, etag }: Encoded, ifNoneMatch: string | undefined): HttpResponse {
  const headers = { etag, vary: "Accept-Encoding, Accept" };
  if (ifNoneMatch === etag) return { status: 304, headers, body: new Uint8Array() };
  return bytes(200, mediaType, body, headers);
}
