/**
 * Registers plugins of the node, which create a socket in a directory of the agent. A loop for each socket calls
 * GetInfo, passes the plugin to the handler of its type, notifies it of the result, and waits until the socket is
 * removed or replaced.
 */
import { mkdir, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { waitForAbort } from "../../std/async/wait-for-abort.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import { watchDirectory } from "../../std/fs/watch-files.ts";
import type { Logger } from "../../std/log/logger.ts";
import { Backoff } from "../../std/time/backoff.ts";
import type { Clock } from "../../std/time/clock.ts";
import { registration } from "./messages.ts";
import { UnixChannel } from "./unix-channel.ts";

export interface Plugin {
  readonly type: string;
  readonly name: string;
  /** Path of the socket on which it serves. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** Handles one type of plugins. */
export interface PluginHandler {
  /** Throws the error of which the plugin is notified, before it is called. */
  validate(plugin: Plugin): void;
  /** Rejects with the error of which the plugin is notified; the registration is retried later. */
  register(plugin: Plugin, signal: AbortSignal): Promise<void>;
  /** Called when the socket of a registered plugin is removed; not when the agent stops. */
  deregister(plugin: Plugin): Promise<void>;
}

/** Follows the sockets of plugins. */
export interface PluginSocketObserver {
  onFound(path: string): void;
  onRegistered(path: string): void;
  onRemoved(path: string): void;
}

export interface PluginWatcherOptions {
  readonly directory: string;
  /** By type. */
  readonly handlers: Readonly<Record<string, PluginHandler>>;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Logger;
  readonly observer?: PluginSocketObserver | undefined;
  readonly signal: AbortSignal;
}

interface PluginSocket {
  /** Distinguishes a socket from one that replaced it. */
  readonly identity: string;
  readonly removal: AbortController;
  readonly done: Promise<void>;
}

/** Further sockets are ignored. */
const PLUGINS_MAX = 256;
const CALL_MS = 10_000;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 60_000;

/** Runs until the signal aborts. Never rejects. */
export async function watchPlugins(options: PluginWatcherOptions): Promise<void> {
  const { directory, clock, log, signal } = options;
  const sockets = new Map<string, PluginSocket>();
  await mkdir(directory, { recursive: true, mode: 0o750 }).catch((error: unknown) => {
    log.warn("Cannot create the plugin directory", { directory, error: String(error) });
  });
  let checks = Promise.resolve();
  const check = (): void => {
    checks = checks
      .then(() => reconcile(options, sockets))
      .catch((error: unknown) => {
        if (!signal.aborted) log.warn("Cannot list plugins", { directory, error: String(error) });
      });
  };
  // The watch starts before the first check, so that no socket is missed.
  using _watch = watchDirectory(directory, clock, check);
  check();
  await waitForAbort(signal);
  await checks;
  for (const { removal } of sockets.values()) removal.abort();
  await Promise.all([...sockets.values()].map(({ done }) => done));
}

async function reconcile(options: PluginWatcherOptions, sockets: Map<string, PluginSocket>): Promise<void> {
  const { directory, log, observer, signal } = options;
  const found = await listSockets(directory);
  for (const [path, { identity, removal, done }] of sockets) {
    if (found.get(path) === identity) continue;
    removal.abort();
    await done;
    sockets.delete(path);
    observer?.onRemoved(path);
  }
  for (const [path, identity] of found) {
    if (sockets.has(path) || signal.aborted) continue;
    if (sockets.size >= PLUGINS_MAX) return log.warn("Too many plugins: ignoring the others", { directory });
    const removal = new AbortController();
    observer?.onFound(path);
    sockets.set(path, { identity, removal, done: runSocket(options, path, removal.signal) });
  }
}

/** Sockets in the directory and below it, without hidden files. */
async function listSockets(directory: string): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const entries = await readdir(directory, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isSocket() || path.slice(directory.length).includes("/.")) continue;
    const stats = await stat(path, { bigint: true }).catch(() => undefined);
    if (stats !== undefined) found.set(path, `${stats.dev}:${stats.ino}:${stats.ctimeNs}`);
  }
  return found;
}

/** Runs from the creation of the socket to its removal. Never rejects. */
async function runSocket(options: PluginWatcherOptions, path: string, removed: AbortSignal): Promise<void> {
  const { clock, random, log, signal } = options;
  const either = AbortSignal.any([removed, signal]);
  const backoff = new Backoff({ initialMs: RETRY_MIN_MS, maxMs: RETRY_MAX_MS }, random);
  let plugin: Plugin | undefined;
  while (plugin === undefined && !either.aborted) {
    try {
      plugin = await registerPlugin(options, path, either);
      options.observer?.onRegistered(path);
      log.info("Registered plugin", { type: plugin.type, name: plugin.name, endpoint: plugin.endpoint });
    } catch (error) {
      if (either.aborted) break;
      log.warn("Cannot register plugin", { socket: path, error: error instanceof Error ? error.message : error });
      await clock.sleep(backoff.next(), either).catch(() => undefined);
    }
  }
  await waitForAbort(either);
  if (plugin === undefined || signal.aborted) return;
  log.info("Plugin socket was removed", { type: plugin.type, name: plugin.name });
  await options.handlers[plugin.type]
    ?.deregister(plugin)
    .catch((error: unknown) => log.warn("Cannot deregister plugin", { name: plugin.name, error: String(error) }));
}

async function registerPlugin(options: PluginWatcherOptions, path: string, signal: AbortSignal): Promise<Plugin> {
  using channel = new UnixChannel(path, options.clock);
  const limits = { timeoutMs: CALL_MS, signal };
  const {
    type = "",
    name = "",
    endpoint = "",
    supportedVersions,
  } = await channel.call(registration.getInfo, {}, limits);
  const plugin = { type, name, endpoint: endpoint || path, versions: supportedVersions ?? [] };
  const failure = await tryRegister(options, plugin, path, signal);
  // The registration is valid even if the notification fails.
  const notified = channel.call(
    registration.notifyRegistrationStatus,
    failure === undefined ? { pluginRegistered: true } : { pluginRegistered: false, error: failure },
    limits,
  );
  await notified.catch((error: unknown) =>
    options.log.warn("Cannot notify plugin of its registration", { name, error: String(error) }),
  );
  if (failure !== undefined) throw new Error(failure);
  return plugin;
}

async function tryRegister(
  { handlers }: PluginWatcherOptions,
  plugin: Plugin,
  path: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const handler = handlers[plugin.type];
  if (handler === undefined) {
    return `RegisterPlugin error -- no handler registered for plugin type: ${plugin.type} at socket ${path}`;
  }
  let step = "validation";
  try {
    handler.validate(plugin);
    step = "registration";
    await handler.register(plugin, signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    const message = error instanceof Error ? error.message : String(error);
    return `RegisterPlugin error -- plugin ${step} failed with err: ${message}`;
  }
}
