/**
 * Applies transactions of nftables to tables in memory and evaluates packets against them: the part of the language
 * that network policies use. Throws for what the kernel would refuse.
 */
import { contains, type IpFamily, parseCidr, parseIp } from "../../std/net/ip.ts";

export interface Packet {
  readonly hook: "forward" | "input";
  readonly source: string;
  readonly destination: string;
  /** `icmp` and `icmpv6` have no ports. */
  readonly protocol: "tcp" | "udp" | "sctp" | "icmp" | "icmpv6";
  readonly port?: number | undefined;
  readonly icmpType?: number | undefined;
  readonly isReply?: boolean | undefined;
  readonly isRelated?: boolean | undefined;
  /** Both the same for packets within a bridge. */
  readonly device?: string | undefined;
}

interface Table {
  readonly sets: Map<string, Map<string, string>>;
  readonly chains: Map<string, Chain>;
}

interface Chain {
  readonly hook: string | undefined;
  readonly priority: number;
  readonly rules: string[];
}

type Verdict = "accept" | "drop";

export class NftTables {
  /** By `ip NAME`. */
  readonly #tables = new Map<string, Table>();

  get names(): readonly string[] {
    return [...this.#tables.keys()];
  }

  /** The rules of a chain; undefined if there is none. */
  rules(table: string, chain: string): readonly string[] | undefined {
    return this.#tables.get(table)?.chains.get(chain)?.rules;
  }

  /** The names of all sets and chains, and their elements, for comparisons of whole states. */
  dump(): unknown {
    return [...this.#tables].map(([name, { sets, chains }]) => ({
      name,
      sets: Object.fromEntries(
        [...sets].sort().map(([set, elements]) => [set, Object.fromEntries([...elements].sort())]),
      ),
      chains: Object.fromEntries([...chains].sort().map(([chain, { rules }]) => [chain, rules])),
    }));
  }

  apply(text: string): void {
    const lines = text.split("\n");
    for (let at = 0; at < lines.length; at++) {
      const line = lines[at]!;
      if (line.trim() === "") continue;
      const block = /^table (ip6? [-\w]+) \{$/.exec(line);
      if (block === null) {
        this.#command(line);
        continue;
      }
      const end = lines.indexOf("}", at);
      this.#block(block[1]!, lines.slice(at + 1, end));
      at = end;
    }
    for (const [name, { chains }] of this.#tables) {
      for (const [chain, { rules }] of chains) {
        for (const rule of rules) this.#checkReferences(name, chain, rule);
      }
    }
  }

  verdict(packet: Packet): Verdict {
    const family = parseIp(packet.source)?.family === "IPv6" ? "ip6" : "ip";
    for (const [name, table] of this.#tables) {
      if (!name.startsWith(`${family} `)) continue;
      const hooked = [...table.chains.values()].filter(({ hook }) => hook === packet.hook);
      for (const chain of hooked.toSorted((a, b) => a.priority - b.priority)) {
        if (evaluateChain(table, chain, packet) === "drop") return "drop";
      }
    }
    return "accept";
  }

  #block(name: string, lines: readonly string[]): void {
    if (this.#tables.has(name)) throw new Error(`table ${name} exists`);
    const table: Table = { sets: new Map(), chains: new Map() };
    this.#tables.set(name, table);
    for (let at = 0; at < lines.length; at++) {
      const line = lines[at]!;
      const set = /^ (?:map|set) ([-\w]+) \{ type [^;]+;(?: elements = \{ (.*) \})? \}$/.exec(line);
      if (set !== null) {
        table.sets.set(set[1]!, new Map((set[2] ?? "").split(", ").flatMap((key) => (key === "" ? [] : [[key, ""]]))));
        continue;
      }
      const chain = /^ chain ([-\w]+) \{$/.exec(line);
      if (chain === null) throw new Error(`cannot parse ${JSON.stringify(line)}`);
      const end = lines.indexOf(" }", at);
      const hook = /^ {2}type filter hook (\w+) priority (-?\d+); policy accept;$/.exec(lines[at + 1]!);
      const rules = lines.slice(at + 2, end).map((rule) => rule.trim());
      table.chains.set(chain[1]!, { hook: hook?.[1], priority: Number(hook?.[2]), rules });
      at = end;
    }
  }

  #command(line: string): void {
    const [verb = "", what = "", family = "", tableName = "", name = "", ...rest] = line.split(" ");
    const key = `${family} ${tableName}`;
    if (what === "table") {
      if (verb === "add" && !this.#tables.has(key)) this.#tables.set(key, { sets: new Map(), chains: new Map() });
      if (verb === "delete" && !this.#tables.delete(key)) throw new Error(`no table: ${line}`);
      return;
    }
    const table = this.#tables.get(key);
    if (table === undefined) throw new Error(`no table: ${line}`);
    const argument = rest.join(" ");
    switch (`${verb} ${what}`) {
      case "add set":
        if (table.sets.has(name)) throw new Error(`set exists: ${line}`);
        table.sets.set(name, new Map());
        return;
      case "delete set":
        if (!table.sets.delete(name)) throw new Error(`no set: ${line}`);
        return;
      case "add chain":
        if (!table.chains.has(name)) table.chains.set(name, { hook: undefined, priority: 0, rules: [] });
        return;
      case "flush chain":
        chainOf(table, name).rules.length = 0;
        return;
      case "delete chain":
        if (chainOf(table, name).rules.length > 0) throw new Error(`chain is not empty: ${line}`);
        table.chains.delete(name);
        this.#checkUnused(table, name);
        return;
      case "add rule":
        chainOf(table, name).rules.push(argument);
        return;
      case "add element":
      case "delete element":
        this.#changeElements(table, verb, name, argument);
        return;
      default:
        throw new Error(`cannot parse ${JSON.stringify(line)}`);
    }
  }

  #changeElements(table: Table, verb: string, name: string, argument: string): void {
    const elements = table.sets.get(name);
    if (elements === undefined) throw new Error(`no set ${name}`);
    for (const text of argument.replace(/^\{ | \}$/g, "").split(", ")) {
      const [key = "", value = ""] = text.split(" : ");
      if (verb === "delete") {
        if (!elements.delete(key)) throw new Error(`no element ${key} in ${name}`);
      } else if (elements.has(key) && elements.get(key) !== value) throw new Error(`element ${key} of ${name} exists`);
      else elements.set(key, value);
      const target = /^(?:goto|jump) (.*)$/.exec(value)?.[1];
      if (target !== undefined) chainOf(table, target);
    }
  }

  #checkUnused({ chains, sets }: Table, name: string): void {
    const uses = [
      ...[...chains.values()].flatMap(({ rules }) => rules),
      ...[...sets.values()].flatMap((elements) => [...elements.values()]),
    ];
    const user = uses.find((text) => new RegExp(`(?:goto|jump) ${name}(?:$| )`).test(text));
    if (user !== undefined) throw new Error(`chain ${name} is in use by ${user}`);
  }

  #checkReferences(name: string, chain: string, rule: string): void {
    const table = this.#tables.get(name)!;
    for (const [, set = ""] of rule.matchAll(/@([-\w]+)/g)) {
      if (!table.sets.has(set)) throw new Error(`${chain}: no set ${set}`);
    }
    const target = /(?:goto|jump) ([-\w]+)/.exec(rule)?.[1];
    if (target !== undefined) chainOf(table, target);
  }
}

function chainOf(table: Table, name: string): Chain {
  const chain = table.chains.get(name);
  if (chain === undefined) throw new Error(`no chain ${name}`);
  return chain;
}

/** Undefined: the packet returns to the chain before. */
function evaluateChain(table: Table, chain: Chain, packet: Packet): Verdict | undefined {
  for (const rule of chain.rules) {
    const action = evaluateRule(table, rule, packet);
    if (action === undefined) continue;
    if (action === "accept" || action === "drop") return action;
    const [verb, target = ""] = action.split(" ");
    const result = evaluateChain(table, chainOf(table, target), packet);
    if (result !== undefined || verb === "goto") return result;
  }
  return undefined;
}

const FIELD = new RegExp(
  "^(?:ip6? (?:saddr|daddr)|meta l4proto|th dport|(?:tcp|udp|sctp) dport|ct (?:direction|state)|icmpv6 type|" +
    "[io]ifname)",
);

/** The verdict of a rule that matches. */
function evaluateRule(table: Table, rule: string, packet: Packet): string | undefined {
  let rest = rule.replace(/ comment ".*"$/, "");
  for (;;) {
    const fields: string[] = [];
    for (let field = FIELD.exec(rest)?.[0]; field !== undefined; field = FIELD.exec(rest)?.[0]) {
      fields.push(field);
      rest = rest.slice(field.length).trimStart();
      if (!rest.startsWith(". ")) break;
      rest = rest.slice(2);
    }
    if (fields.length === 0) return rest;
    const values = fields.map((field) => fieldValue(field, packet));
    const known = values.includes(undefined) ? undefined : values.join(" . ");
    const map = /^vmap @([-\w]+)/.exec(rest);
    if (map !== null) return known === undefined ? undefined : table.sets.get(map[1]!)?.get(known);
    const set = /^@([-\w]+) ?/.exec(rest);
    const list = /^\{ ([^}]*) \} ?/.exec(rest);
    const literal = /^(\S+) ?/.exec(rest);
    const [found = ""] = set ?? list ?? literal ?? [];
    rest = rest.slice(found.length);
    if (known === undefined) return undefined;
    const isMatch =
      set !== null
        ? table.sets.get(set[1]!)?.has(known) === true
        : (list?.[1]?.split(", ") ?? [literal?.[1] ?? ""]).some((text) => isWithin(known, text.replaceAll('"', "")));
    if (!isMatch) return undefined;
  }
}

function fieldValue(field: string, packet: Packet): string | undefined {
  const { protocol, port } = packet;
  switch (field) {
    case "ip saddr":
    case "ip6 saddr":
      return packet.source;
    case "ip daddr":
    case "ip6 daddr":
      return packet.destination;
    case "meta l4proto":
      return protocol;
    case "th dport":
      return port === undefined ? undefined : String(port);
    case "tcp dport":
    case "udp dport":
    case "sctp dport":
      return field.startsWith(`${protocol} `) ? String(port) : undefined;
    case "ct direction":
      return packet.isReply === true ? "reply" : "original";
    case "ct state":
      return packet.isRelated === true ? "related" : "new";
    case "icmpv6 type":
      return protocol === "icmpv6" ? String(packet.icmpType ?? 128) : undefined;
    default:
      return packet.device;
  }
}

/** Whether a value is equal to the text, or within its range or block. */
function isWithin(value: string, text: string): boolean {
  if (value === text) return true;
  const ip = parseIp(value);
  const cidr = parseCidr(text);
  if (cidr !== undefined) return ip !== undefined && contains(cidr, ip);
  const [first = "", last] = text.split("-");
  if (last === undefined) return false;
  const toNumber = (each: string): readonly [IpFamily | "number", bigint] => {
    const parsed = parseIp(each);
    return parsed === undefined ? ["number", BigInt(each)] : [parsed.family, parsed.value];
  };
  if (!/^[\d.a-f:]+$/.test(value)) return false;
  const [[kind, number], [low, from], [, to]] = [toNumber(value), toNumber(first), toNumber(last)];
  return kind === low && number >= from && number <= to;
}
