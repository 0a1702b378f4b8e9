// test/attacks/evil-git.ts: git settings and hooks as an attacker would plant them to run a program.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Every hook that git knows, in a git directory. */
export function plantHooks(gitDir: string, ran: string): void {
  mkdirSync(join(gitDir, 'hooks'), { recursive: true });
  for (const name of HOOKS)
    writeFileSync(join(gitDir, 'hooks', name), `#!/bin/sh\ntouch ${ran}/${name}\n`, { mode: 0o755 });
}

export const HOOKS =
  'applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman post-index-change'.split(
    ' ',
  );

/** Every git setting that names a program; each program leaves its own mark. */
export function evilSettings(ran: string): string {
  const touch = (name: string): string => `"touch ${ran}/${name} #"`;
  return `
[core]
	repositoryformatversion = 1
	fsmonitor = ${touch('fsmonitor')}
	pager = ${touch('pager')}
	editor = ${touch('editor')}
	sshCommand = ${touch('ssh')}
	askPass = ${touch('askpass')}
	gitProxy = ${touch('proxy')}
	alternateRefsCommand = ${touch('alternates')}
[extensions]
	partialClone = evil
[remote "evil"]
	url = "ext::touch ${ran}/fetched"
	promisor = true
	uploadpack = ${touch('uploadpack')}
[protocol]
	allow = always
[protocol "ext"]
	allow = always
[filter "evil"]
	clean = ${touch('clean')}
	smudge = ${touch('smudge')}
	process = ${touch('process')}
[diff]
	external = ${touch('diff')}
[diff "evil"]
	command = ${touch('diffdriver')}
	textconv = ${touch('textconv')}
[merge "evil"]
	driver = ${touch('merge')}
[alias]
	ls-files = !${touch('alias').slice(1, -1)}
	rev-parse = !${touch('alias').slice(1, -1)}
	update-ref = !${touch('alias').slice(1, -1)}
	status = !${touch('alias').slice(1, -1)}
[include]
	path = ${ran}/included
[url "ext::touch ${ran}/insteadof"]
	insteadOf = /
[transfer]
	fsckObjects = false
[uploadpack]
	packObjectsHook = ${touch('packobjects')}
[commit]
	gpgSign = true
[tag]
	gpgSign = true
[gpg]
	program = ${touch('gpg')}
[credential]
	helper = "!touch ${ran}/credential"
`;
}
