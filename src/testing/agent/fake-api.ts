/** The part of an API server that an agent uses, in memory, as a `Transport`. */
import type { HttpRequest, HttpResponse } from "../../http/message.ts";
import { jsonResponse, statusResponse } from "../../http/respond.ts";

interface Stored {
  readonly kind?: string;
  readonly metadata: Record<string, unknown>;
  status?: Record<string, unknown>;
  spec?: unknown;
}

interface Change {
  readonly revision: number;
  readonly path: string;
  readonly event: { readonly type: string; readonly object: Stored };
}

interface Watcher {
  readonly resource: string;
  notify(change: Change): void;
  /** Breaks the connection. */
  fail(): void;
}

/** Resources with lists and watches. */
const listed: ReadonlySet<string> = new Set([
  "configmaps",
  "endpointslices",
  "events",
  "leases",
  "namespaces",
  "networkpolicies",
  "nodes",
  "pods",
  "secrets",
  "services",
]);

export class FakeApi {
  /** By path: `/api/v1/namespaces/default/pods/web`. */
  readonly objects = new Map<string, Stored>();
  /** Bearer token → user, for `TokenReview`; `reviews` counts the requests. */
  readonly tokens = new Map<string, string>();
  reviews = 0;
  /** Allowed requests for `SubjectAccessReview`: `ali get nodes/proxy`; `accessReviews` counts the requests. */
  readonly allowed = new Set<string>();
  accessReviews = 0;
  readonly #watchers = new Set<Watcher>();
  /** All changes; unbounded, since a test makes few. */
  readonly #history: Change[] = [];
  #revision = 0;
  #isDown = false;

  readonly transport = async (request: HttpRequest): Promise<HttpResponse> => {
    const query = new URLSearchParams(request.query);
    const path = decodeURIComponent(request.path).replace(/\/status$/, "");
    const chunks: Uint8Array[] = [];
    for await (const chunk of request.body) chunks.push(chunk);
    if (this.#isDown) throw connectionRefused();
    // Accepts JSON only: clients must fall back.
    if (request.headers["content-type"]?.includes("protobuf"))
      return statusResponse(415, "UnsupportedMediaType", "JSON only");
    const text = Buffer.concat(chunks).toString();
    const body = text === "" ? {} : JSON.parse(text);
    const found = this.objects.get(path);
    switch (request.method) {
      case "GET":
        if (query.get("watch") !== null)
          return this.#watch(path, Number(query.get("resourceVersion") ?? 0), request.signal);
        if (found !== undefined) return jsonResponse(200, found);
        return listed.has(path.slice(path.lastIndexOf("/") + 1)) ? this.#list(path) : notFound(path);
      case "POST": {
        if (path.endsWith("/tokenreviews")) return this.#review(body);
        if (path.endsWith("/subjectaccessreviews")) return this.#reviewAccess(body);
        const objectPath = `${path}/${body.metadata.name}`;
        if (this.objects.has(objectPath)) return statusResponse(409, "AlreadyExists", `${objectPath} already exists`);
        return jsonResponse(201, this.put(objectPath, body));
      }
      case "PUT":
        return jsonResponse(200, this.put(path, body));
      case "PATCH":
        return found === undefined ? notFound(path) : jsonResponse(200, this.put(path, merge(found, body) as Stored));
      case "DELETE":
        if (found === undefined) return notFound(path);
        this.delete(path);
        return jsonResponse(200, { kind: "Status", apiVersion: "v1", status: "Success", metadata: {} });
      default:
        return statusResponse(405, "MethodNotAllowed", request.method);
    }
  };

  put(path: string, object: Stored): Stored {
    const before = this.objects.get(path);
    this.#revision += 1;
    const metadata = {
      uid: `uid-${path.split("/").at(-1)}`,
      creationTimestamp: "2026-01-01T00:00:00Z",
      ...object.metadata,
      resourceVersion: String(this.#revision),
    };
    const stored = { ...object, metadata };
    this.objects.set(path, stored);
    this.#notify(before === undefined ? "ADDED" : "MODIFIED", path, stored);
    return stored;
  }

  delete(path: string): void {
    const found = this.objects.get(path);
    this.#revision += 1;
    this.objects.delete(path);
    if (found === undefined) return;
    const metadata = { ...found.metadata, resourceVersion: String(this.#revision) };
    this.#notify("DELETED", path, { ...found, metadata });
  }

  /** Objects below a path. */
  listBelow(path: string): readonly Stored[] {
    return [...this.objects].filter(([key]) => key.startsWith(`${path}/`)).map(([, object]) => object);
  }

  /** While true, requests fail; existing connections break. */
  set isDown(away: boolean) {
    this.#isDown = away;
    if (away) for (const watcher of this.#watchers) watcher.fail();
  }

  #notify(type: string, path: string, object: Stored): void {
    const change = { revision: this.#revision, path, event: { type, object } };
    this.#history.push(change);
    for (const watcher of this.#watchers) if (watcher.resource === path.split("/").at(-2)) watcher.notify(change);
  }

  #review(review: { readonly spec: { readonly token: string } }): HttpResponse {
    this.reviews++;
    const username = this.tokens.get(review.spec.token);
    const status = username === undefined ? { error: "unknown" } : { authenticated: true, user: { username } };
    return jsonResponse(201, { ...review, status });
  }

  #reviewAccess(review: { readonly spec: object }): HttpResponse {
    this.accessReviews++;
    const { user, resourceAttributes } = review.spec as Readonly<Record<string, unknown>>;
    // An empty verb is not sent.
    const { verb = "", resource, subresource } = resourceAttributes as Readonly<Record<string, string>>;
    return jsonResponse(201, {
      ...review,
      status: { allowed: this.allowed.has(`${user} ${verb} ${resource}/${subresource}`) },
    });
  }

  #list(path: string): HttpResponse {
    const resource = path.split("/").at(-1);
    const items = [...this.objects].filter(([key]) => key.split("/").at(-2) === resource).map(([, object]) => object);
    const metadata = { resourceVersion: String(this.#revision) };
    return jsonResponse(200, { kind: "List", apiVersion: "v1", metadata, items });
  }

  #watch(path: string, since: number, signal: AbortSignal): HttpResponse {
    const resource = path.split("/").at(-1) ?? "";
    const missed = this.#history.filter(
      (each) => since > 0 && each.revision > since && each.path.split("/").at(-2) === resource,
    );
    const queue = missed.map(line);
    let wake = Promise.withResolvers<void>();
    let failed = false;
    const watcher: Watcher = {
      resource,
      notify(change) {
        queue.push(line(change));
        wake.resolve();
      },
      fail() {
        failed = true;
        wake.resolve();
      },
    };
    this.#watchers.add(watcher);
    signal.addEventListener("abort", () => wake.resolve(), { once: true });
    const watchers = this.#watchers;
    async function* body(): AsyncGenerator<Uint8Array> {
      try {
        while (!signal.aborted) {
          if (failed) throw connectionRefused();
          yield* queue.splice(0);
          await wake.promise;
          wake = Promise.withResolvers<void>();
        }
      } finally {
        watchers.delete(watcher);
      }
    }
    return { status: 200, headers: { "content-type": "application/json" }, body: body() };
  }
}

function line({ event }: Change): Buffer {
  return Buffer.from(`${JSON.stringify(event)}\n`);
}

function connectionRefused(): Error {
  return Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
}

function notFound(path: string): HttpResponse {
  return statusResponse(404, "NotFound", `${path} not found`);
}

/** Merges maps, removes null members, merges lists of objects with a type by it, and replaces other lists. */
function merge(target: unknown, patch: unknown): unknown {
  if (Array.isArray(patch)) return mergeList(Array.isArray(target) ? target : [], patch);
  if (typeof patch !== "object" || patch === null) return patch;
  const result: Record<string, unknown> = { ...(target as Record<string, unknown> | undefined) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merge(result[key], value);
  }
  return result;
}

function mergeList(target: readonly { type?: string }[], patch: readonly { type?: string }[]): unknown {
  const items = patch.filter((item) => typeof item !== "object" || !("$patch" in item));
  if (patch.length === 0 || items.length < patch.length || items.some((item) => item.type === undefined)) return items;
  const kept = target.filter((old) => !items.some((item) => item.type === old.type));
  return [
    ...items.map((item) =>
      merge(
        target.find((old) => old.type === item.type),
        item,
      ),
    ),
    ...kept,
  ];
}
