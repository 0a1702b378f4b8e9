// run/sandbox-key.ts: a hash of everything that decides how a sandbox is built. Sandboxes with the same key are built alike, so the
// attack results of one hold for the other.
import { readFileSync, statSync } from 'node:fs';
import { shortHash } from '../lib/short-hash.ts';
import type { RunPlan } from './run-plan.ts';
import type { HostContext } from './host-context.ts';

export function sandboxKey(context: HostContext, plan: RunPlan): string {
  const { configured: config, host, image, network, workspace } = plan;
  const { mode, presets, rules, addresses, tcp, publish, limits } = config.network;
  const builder = host.engine === null ? host.programs.bwrap : host.engine.program;
  const { mtimeMs, size } = statSync(builder);
  const parts = [
    readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
    context.kernel,
    context.uid,
    // Another build of ags may build sandboxes differently.
    statSync(import.meta.filename).mtimeMs,
    [host.engine?.name ?? 'native', builder, mtimeMs, size],
    engineKey(host.engine),
    [host.cgroupPlan.kind, 'holds' in host.cgroupPlan ? host.cgroupPlan.holds : []],
    [image?.id ?? null, config.runtime, config.user, workspace, network.spec.kind, config.home.keep],
    [config.toolDirs, config.mounts, config.etc, config.hide, config.reveal],
    [config.envPass, config.pathEnv, Object.keys(config.envSet)],
    [config.limits, config.kernel],
    // Parts beside the sandbox are attacked as well.
    [config.docker.enabled, config.compose !== null, config.services.length > 0],
    { mode, presets, rules: rules.map((rule) => ({ ...rule, origin: '' })), addresses, tcp, publish, limits },
  ];
  return shortHash(JSON.stringify(parts));
}

/** Identifies the engine without a request to it. A restarted engine may be another one, or have other settings. */
function engineKey(engine: RunPlan['host']['engine']): readonly unknown[] {
  if (engine === null) return [];
  const { far, socket, rootless, options } = engine;
  const began = socket === null ? null : (statSync(socket, { throwIfNoEntry: false })?.mtimeMs ?? null);
  return [far, socket, began, rootless, options];
}
