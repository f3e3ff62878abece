/**
 * For tests: a CRI server on a unix socket that goes wrong as it is told. What it does when nothing goes wrong is done
 * by the runtime behind it, a fake one or a real one; so the same faults are tried on both.
 */
import * as grpc from "@grpc/grpc-js";
import { imageService, runtimeService } from "../../agent/runtime/cri/services.ts";
import { type ImageService, type Runtime, RuntimeError } from "../../agent/runtime/runtime.ts";
import { defineUnaryMethod } from "../../schema/protobuf/unary-method.ts";
import type { ObjectSchema } from "../../schema/schema.ts";
import type { Clock } from "../../std/time/clock.ts";

export type CriMethod = keyof typeof runtimeService | keyof typeof imageService;

/** A call as it comes; the signal aborts when its client went, or the server died. */
export interface CriCall {
  readonly method: CriMethod;
  readonly request: unknown;
  readonly signal: AbortSignal;
}

/** What happens to a call: it goes on when the promise resolves, and fails with what that rejects with. */
export type FaultAction = (call: CriCall) => Promise<void> | void;

export interface Fault {
  readonly method: CriMethod;
  /** Which of the calls of this method that come after the fault was set, 1 for the first; all when absent. */
  readonly nth?: number;
  /** Before the runtime does its work, or when that is done and only the answer is missing. */
  readonly when: "before" | "after";
  readonly action: FaultAction;
}

export interface CriBackend {
  readonly runtime: Partial<Runtime>;
  readonly images: Partial<ImageService>;
}

/** The answer comes late, so that others overtake it. */
export function delay(clock: Clock, milliseconds: number): FaultAction {
  return ({ signal }) => clock.sleep(milliseconds, signal);
}

export function fail(code: string, text: string): FaultAction {
  return () => Promise.reject(new RuntimeError(code, text));
}

/** No answer ever comes. */
export const neverRespond: FaultAction = ({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject));

type Unary = grpc.handleUnaryCall<unknown, unknown>;

export class ScriptedCri implements AsyncDisposable {
  readonly endpoint: string;
  /** Names of calls in the order in which they came. */
  readonly calls: CriMethod[] = [];
  readonly #backend: CriBackend;
  readonly #faults: { readonly fault: Fault; seen: number }[] = [];
  #server: grpc.Server | undefined;
  #life = new AbortController();

  constructor(path: string, backend: CriBackend) {
    this.endpoint = `unix://${path}`;
    this.#backend = backend;
  }

  /** Listens; also again after `kill`. */
  async start(): Promise<void> {
    this.#life = new AbortController();
    const server = new grpc.Server({ "grpc.max_receive_message_length": 16 * 2 ** 20 });
    server.addService(...this.#service("runtime.v1.RuntimeService", runtimeService, this.#backend.runtime));
    server.addService(...this.#service("runtime.v1.ImageService", imageService, this.#backend.images));
    await new Promise<void>((resolve, reject) => {
      server.bindAsync(this.endpoint, grpc.ServerCredentials.createInsecure(), (error) =>
        error === null ? resolve() : reject(error),
      );
    });
    this.#server = server;
  }

  /** Breaks every connection, and takes no new one; what the runtime is doing goes on. */
  kill(): void {
    this.#server?.forceShutdown();
    this.#server = undefined;
    this.#life.abort(new Error("the server died"));
  }

  /** Sets a fault; the returned function takes it back. */
  on(fault: Fault): () => void {
    const entry = { fault, seen: 0 };
    this.#faults.push(entry);
    return () => {
      const place = this.#faults.indexOf(entry);
      if (place >= 0) this.#faults.splice(place, 1);
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
  }

  #service(
    name: string,
    methods: Readonly<Record<string, { readonly request: ObjectSchema; readonly response: ObjectSchema }>>,
    backend: object,
  ): [grpc.ServiceDefinition, Record<string, Unary>] {
    const definition: Record<string, grpc.MethodDefinition<object, object>> = {};
    const handlers: Record<string, Unary> = {};
    for (const [method, { request, response }] of Object.entries(methods)) {
      const work = (backend as Readonly<Record<string, Work | undefined>>)[camelCase(method)];
      if (work === undefined) continue;
      definition[method] = defineUnaryMethod(`/${name}/${method}`, request, response);
      handlers[method] = this.#handler(method as CriMethod, work);
    }
    return [definition, handlers];
  }

  #handler(method: CriMethod, work: Work): Unary {
    return (call, answer) => {
      const gone = new AbortController();
      call.on("cancelled", () => gone.abort(new Error("the client went")));
      const { request } = call;
      const seen: CriCall = { method, request, signal: AbortSignal.any([gone.signal, this.#life.signal]) };
      this.calls.push(method);
      this.#answer(seen, work, gone.signal).then(
        (value) => answer(null, value),
        (error: unknown) => answer(statusOf(error)),
      );
    };
  }

  async #answer(call: CriCall, work: Work, gone: AbortSignal): Promise<unknown> {
    const due = this.#due(call.method);
    for (const { action: act } of due.filter(({ when }) => when === "before")) await act(call);
    call.signal.throwIfAborted();
    // A runtime that was asked does what it was asked to, whatever becomes of this server.
    const value = await work(call.request, gone);
    for (const { action: act } of due.filter(({ when }) => when === "after")) await act(call);
    return value;
  }

  #due(method: CriMethod): readonly Fault[] {
    const own = this.#faults.filter(({ fault }) => fault.method === method);
    for (const each of own) each.seen += 1;
    return own.filter(({ fault, seen }) => fault.nth === undefined || fault.nth === seen).map(({ fault }) => fault);
  }
}

type Work = (request: unknown, signal: AbortSignal) => Promise<unknown>;

function camelCase(name: string): string {
  return name.slice(0, 1).toLowerCase() + name.slice(1);
}

function statusOf(error: unknown): Partial<grpc.StatusObject> {
  const code = error instanceof RuntimeError ? error.code : "UNKNOWN";
  const details = error instanceof RuntimeError ? error.detail : String(error);
  return { code: grpc.status[code as keyof typeof grpc.status] ?? grpc.status.UNKNOWN, details };
}
