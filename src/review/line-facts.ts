// review/line-facts.ts: sentences, as data, for single added lines of known files. `$1` in a sentence is the first group.
// Expressions are anchored or bounded, so no line can make them slow.
import type { Level } from './fact.ts';

export interface LineFact {
  readonly level: Level;
  readonly when: RegExp;
  readonly say: string;
}

export const LINE_FACTS: Readonly<
  Record<'package-config' | 'attributes' | 'submodules' | 'workflow' | 'dependencies' | 'editor', readonly LineFact[]>
> = {
  'package-config': [
    {
      level: 'host',
      when: /^\s*"?((?:@[^:\s]{1,100}:)?(?:registry|npmRegistryServer|index-url|extra-index-url|find-links))"?\s*[=:]\s*(.+)$/i,
      say: 'Takes packages from another place: $1 = $2',
    },
    {
      level: 'host',
      when: /^\s*"?(script-shell|node-options|git|shell|init-module|globalconfig|prefix|yarnPath|pnpmfile|global-pnpmfile|hooks|trusted-host)"?\s*[=:]\s*(.+)$/i,
      say: 'Names a program or file to use: $1 = $2',
    },
    {
      level: 'host',
      when: /^\s*"?(ignore-scripts|enableScripts|strict-ssl|enableStrictSsl|cafile|ca|https?-?proxy|unsafe-perm|enableImmutableInstalls|checksumBehavior)"?\s*[=:]\s*(.+)$/i,
      say: 'Changes a safeguard of installs: $1 = $2',
    },
    {
      level: 'host',
      when: /^\s*(plugins|onlyBuiltDependencies|dangerouslyAllowAllBuilds|trustedDependencies|neverBuiltDependencies)\s*:/i,
      say: 'Changes which packages may run code: $1',
    },
  ],
  attributes: [
    {
      level: 'host',
      when: /^\s*(\S+)\s(?:.*\s)?(filter|diff|merge)=(\S+)/,
      say: 'Sends $1 through the $2 driver "$3".',
    },
    { level: 'host', when: /^\s*(\S+)\s(?:.*\s)?(-diff|binary)(?:\s|$)/, say: 'Hides the diff of $1 ($2).' },
    {
      level: 'host',
      when: /^\s*(\S+)\s(?:.*\s)?(linguist-generated|linguist-vendored)(?:=true)?(?:\s|$)/,
      say: 'Hides $1 in reviews ($2).',
    },
    {
      level: 'host',
      when: /^\s*(\S+)\s(?:.*\s)?(working-tree-encoding=\S+|ident|export-subst)(?:\s|$)/,
      say: 'Lets git rewrite $1 ($2).',
    },
    { level: 'host', when: /^\s*\[attr\](\S+)/, say: 'Defines the attribute macro $1.' },
  ],
  submodules: [
    { level: 'host', when: /^\s*url\s*=\s*(.+)$/i, say: 'Sets the address of a submodule: $1' },
    {
      level: 'host',
      when: /^\s*update\s*=\s*(.+)$/i,
      say: 'Sets how a submodule is updated, which can be a command: $1',
    },
    { level: 'host', when: /^\s*path\s*=\s*(.+)$/i, say: 'Places a submodule at $1' },
    {
      level: 'host',
      when: /^\s*(ignore|fetchRecurseSubmodules|shallow)\s*=\s*(.+)$/i,
      say: 'Sets $1 = $2 for a submodule.',
    },
  ],
  workflow: [
    {
      level: 'ci',
      when: /\bpull_request_target\b/,
      say: "Runs on pull_request_target: a stranger's pull request meets this repository's secrets.",
    },
    {
      level: 'ci',
      when: /\b(workflow_run|repository_dispatch|issue_comment)\b/,
      say: 'Runs on $1, which others can trigger.',
    },
    { level: 'ci', when: /^\s*["']?permissions["']?\s*:\s*(?!\{\s*\}|read-all)(\S.*)$/, say: 'Sets permissions: $1' },
    {
      level: 'ci',
      when: /^\s*["']?((?:actions|attestations|checks|contents|deployments|discussions|id-token|issues|models|packages|pages|pull-requests|repository-projects|security-events|statuses)["']?\s*:\s*["']?write)\b/,
      say: 'Sets permissions: $1',
    },
    {
      level: 'ci',
      when: /^\s*(?:-\s*)?["']?uses["']?\s*:\s*["']?((?!\.\/|docker:\/\/[^\s@]{1,300}@sha256:)[^\s#"']{1,300}(?<!@[0-9a-f]{40}|@[0-9a-f]{64}))(?=["'\s#]|$)/,
      say: 'Uses $1, which is not pinned to a commit.',
    },
    { level: 'ci', when: /\bsecrets\.(\w{1,100})/, say: 'Reads the secret $1.' },
    { level: 'ci', when: /\bsecrets\s*:\s*inherit\b|\btoJSON\(\s*secrets\s*\)/i, say: 'Hands on all secrets.' },
    { level: 'ci', when: /\bself-hosted\b/, say: 'Runs on a self-hosted runner.' },
    {
      level: 'ci',
      when: /\bpersist-credentials\s*:\s*["']?true/,
      say: 'Leaves the repository token on the disk of the runner.',
    },
    {
      level: 'ci',
      when: /^(?=.*\b(?:curl|wget)\b).*\|\s*(?:sudo\s+)?(?:ba|da|z)?sh\b/,
      say: 'Pipes a download into a shell.',
    },
    {
      level: 'ci',
      when: /^(?=.*\$\{\{).*\$\{\{\s*(github\.(?:event\.[\w.]{1,100}\.(?:title|body|message|name|email|ref|label|page_name|default_branch)|head_ref))\b/,
      say: 'Inserts $1, text that others choose.',
    },
  ],
  dependencies: [
    {
      level: 'host',
      when: /^\s*(?:-i|-f|--(?:extra-)?index-url|--find-links|--trusted-host)[\s=]+(\S+)/,
      say: 'Takes packages from another place: $1',
    },
    { level: 'host', when: /^\s*build\s*=\s*(.+)$/, say: 'Names a build script: $1' },
    {
      level: 'host',
      when: /^\s*proc-macro\s*=\s*true/,
      say: 'Becomes a procedural macro, which runs inside the compiler.',
    },
    {
      level: 'host',
      when: /^(?!\s*"?(?:repository|homepage|documentation|source|bug\w*|issue\w*)"?\s*[:=])(?!\s*#).*?((?:git\+|git:|https?:|ssh:|file:)\/{0,3}[^\s"',;)]{3,200})/i,
      say: 'Takes code from $1',
    },
    { level: 'look', when: /^\s*(?:replace\s+)?(\S{1,200}.{0,100}=>\s*\S.*)$/, say: 'Replaces a module: $1' },
    { level: 'look', when: /^\s*(toolchain\s+\S+|tool\s+\S+)/, say: 'Sets $1' },
    { level: 'look', when: /^\s*\[(patch|replace|source)\b([^\]]{0,100})\]/, say: 'Replaces packages: [$1$2]' },
  ],
  editor: [
    { level: 'host', when: /"runOn"\s*:\s*"folderOpen"/i, say: 'A task runs as soon as the folder is opened.' },
    {
      level: 'host',
      when: /"([\w.-]{0,60}(?:command|path|executable|interpreter|shell|program|args|env|preLaunchTask|run|script|server)[\w.-]{0,60})"\s*:\s*(\S.{0,200})/i,
      say: 'Sets $1: $2',
    },
    {
      level: 'host',
      when: /"(security\.[\w.]{1,60}|task\.allowAutomaticTasks|chat\.[\w.-]{1,80})"\s*:\s*(\S.{0,100})/i,
      say: 'Sets $1: $2',
    },
  ],
};
