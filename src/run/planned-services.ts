// run/planned-services.ts: the services of a run before they start. Nearly all types, because every command loads this file.
import type { ServiceConfig } from '../protocol/service.ts';
import type { Connection, ServicePreset } from '../services/presets/preset.ts';

export interface PlannedService {
  readonly service: ServiceConfig;
  /** null: a command of the user. */
  readonly preset: ServicePreset | null;
  readonly to: Connection;
  /** Its own loopback address in the task's sandbox. */
  readonly address: string;
  readonly url: string;
  readonly programs:
    | { readonly path: readonly string[]; readonly stamps: readonly string[] }
    | { readonly missing: readonly string[] };
}

/** A name with its own address in the task's sandbox. */
export interface Neighbour {
  readonly name: string;
  readonly address: string;
}

/** A service of the project's compose files. */
export interface ComposedService extends Neighbour {
  /** The ports that the files declare; those that an image exposes are known only when it is there. */
  readonly ports: readonly number[];
}

/** The compose files of a project before they are started. */
export interface PlannedCompose {
  /** The compose client, which runs in a sandbox, and its global options. */
  readonly client: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The user's own file, merged over the others; null: none. */
  readonly override: string | null;
  /** The project as the client sees it: layers, topmost first, and hidden paths. */
  readonly layers: readonly string[];
  readonly hidden: readonly string[];
  /** Services that the user named; empty: all. */
  readonly chosen: readonly string[];
  readonly list: readonly ComposedService[];
  /** Files and directories for containers, relative to the project. */
  readonly shared: readonly string[];
  readonly timeoutSeconds: number | null;
}

export interface PlannedServices {
  readonly list: readonly PlannedService[];
  readonly compose: PlannedCompose | null;
  /** Keyed by "address:port" in the task's sandbox: the service behind that listener. */
  readonly listeners: ReadonlyMap<string, { readonly name: string; readonly port: number }>;
  /** Lines for its /etc/hosts. */
  readonly hosts: string;
}

export const NO_SERVICES: PlannedServices = { list: [], compose: null, listeners: new Map(), hosts: '' };

export function hasServices({ list, compose }: PlannedServices): boolean {
  return list.length > 0 || compose !== null;
}

/** Its kind in one word. */
export function kindOf({ preset, service }: Pick<PlannedService, 'preset' | 'service'>): string {
  return preset?.name ?? (service.image === null ? 'command' : 'image');
}

/** The order of `services:` decides: the first has 127.77.0.1. */
export function serviceAddress(place: number): string {
  return `127.77.0.${place + 1}`;
}

export function composeAddress(place: number): string {
  return `127.77.1.${place + 1}`;
}
