// attack/table/identity.ts: attempts to learn the caller's variables, command lines, agents and keys. See attack.ts.
import type { Attack } from './attack.ts';

const perl = String.raw;

/** Variables by which programs find the gateway. */
const NETWORK =
  'http_proxy HTTP_PROXY https_proxy HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY NODE_USE_ENV_PROXY YARN_HTTP_PROXY YARN_HTTPS_PROXY ELECTRON_GET_USE_PROXY JAVA_TOOL_OPTIONS';

export const IDENTITY_ATTACKS: readonly Attack[] = [
  {
    id: 'cred-variables',
    area: 'credentials',
    references: ['A135'],
    what: 'find a variable that is not on the list',
    perl: perl`my %may = map { $_ => 1 } qw(PATH HOME USER LOGNAME SHELL TMPDIR TERM LANG PWD OLDPWD SHLVL _ AGS_SANDBOX AGS_TASK ${NETWORK}), split ' ', $V{VARIABLES}; for (sort keys %ENV) { print "$_ = there\n" unless $may{$_} } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'cred-foreign-variables',
    area: 'credentials',
    references: ['A135'],
    what: "find the caller's variables in the environment of any process",
    perl: perl`my %may = map { $_ => 1 } qw(PATH HOME USER LOGNAME SHELL TMPDIR TERM LANG PWD OLDPWD SHLVL _ AGS_SANDBOX AGS_TASK AGS_RUN ${NETWORK}), split ' ', $V{VARIABLES}; for my $file (glob '/proc/[0-9]*/environ') { for (split /\0/, slurp($file) // '') { my ($name) = split /=/; print "$file $name = there\n" unless $may{$name} } } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'cred-launch-arguments',
    area: 'credentials',
    references: ['A142'],
    what: 'read the arguments that the sandbox was made with',
    perl: perl`for my $file (glob '/proc/[0-9]*/cmdline') { my @words = split /\0/, slurp($file) // ''; for (@words) { print "$file $_ = there\n" if /^--(setenv|bind|ro-bind|seccomp|uid|args=)/ || (/\Q$V{STATE}/ && !/perl/) } } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'cred-agent-variables',
    area: 'credentials',
    references: ['A143'],
    what: 'reach key agents and message buses by their variables',
    perl: perl`for (qw(SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DISPLAY WAYLAND_DISPLAY XAUTHORITY KRB5CCNAME AWS_PROFILE AWS_SECRET_ACCESS_KEY GITHUB_TOKEN SECRET_TOKEN DOCKER_HOST KUBECONFIG)) { line(exists $ENV{$_} && !($_ eq 'DOCKER_HOST' && $ENV{$_} eq $V{ENGINE}) ? 'set' : 'unset', $_) }`,
    expect: ['unset'],
  },
  {
    id: 'cred-leftover-secrets',
    area: 'credentials',
    references: ['A142'],
    what: 'find a secret in the files of the sandbox itself',
    perl: perl`look($_) for "$V{PROJECT}/.git/config.worktree", "$V{PROJECT}/.git/logs", "$V{PROJECT}/.git/credentials", "$V{PROJECT}/.git/FETCH_HEAD"; my $config = slurp("$V{PROJECT}/.git/config") // ''; line($config =~ /remote|url|credential|token|helper|hooksPath|sshCommand|filter/i ? 'there' : 'ENOENT', 'config'); opendir my $d, "$V{PROJECT}/.git/hooks"; line((grep { !/^\.\.?$/ } readdir $d) ? 'there' : 'ENOENT', 'hooks')`,
    expect: ['ENOENT'],
  },
  {
    id: 'cred-ags-endpoint',
    area: 'credentials',
    references: ['A39'],
    what: 'find an endpoint of ags itself',
    perl: perl`for my $dir ('/run', '/run/ags', '/tmp', $V{HOME}, "$V{PROJECT}/.git") { opendir my $d, $dir; for (readdir $d) { print "$dir/$_ = socket\n" if -S "$dir/$_" } } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'cred-authority-key',
    area: 'credentials',
    references: ['A142'],
    what: 'find the private key of the authority that the sandbox trusts',
    perl: perl`for my $file (glob('/run/ags/* /etc/ssl/certs/*ags*')) { my $text = -f $file ? slurp($file) // '' : ''; print "$file = a key\n" if $text =~ /PRIVATE KEY/ } print "searched\n"`,
    expect: ['searched'],
  },
  {
    id: 'cred-git-credentials',
    area: 'credentials',
    references: ['A142', 'A143'],
    what: 'get a password from git: helpers, remotes, extra headers',
    perl: perl`chdir $V{PROJECT}; my $said = qx(printf 'protocol=https\nhost=example.test\n\n' | GIT_TERMINAL_PROMPT=0 GIT_ASKPASS=true git credential fill 2>&1); line($said =~ /password=\S/ ? 'a password' : 'none', 'fill'); line(qx(git config --get-regexp '^(remote|http|credential|url)\\.' 2>/dev/null) eq '' ? 'none' : 'settings', 'settings'); line(qx(git config --global --list 2>/dev/null) =~ /helper|token|extraheader/i ? 'settings' : 'none', 'global')`,
    expect: ['none'],
  },
  {
    id: 'cred-search',
    area: 'credentials',
    references: ['A142'],
    what: 'find the planted secret in any file, variable or command line that can be read',
    perl: perl`my $hits = 0; my ($word) = ('CANARY' . '-'); for my $file (glob('/proc/[0-9]*/environ /proc/[0-9]*/cmdline /run/ags/* /etc/* /tmp/* /var/tmp/*'), map { glob("$_/.* $_/*") } $V{HOME}, $V{PROJECT}, "$V{PROJECT}/.git") { next unless -f $file && -s _ < 1 << 20 || $file =~ m{^/proc}; my $text = slurp($file) // next; print "$file = found\n" if $text =~ /$word[0-9a-f]{16}/ } print "searched\n"`,
    expect: ['searched'],
  },
];
