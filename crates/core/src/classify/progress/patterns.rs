//! The expressions for numbers of a training, and which of them are worth a try on a line.

use std::sync::LazyLock;

use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::classify::words::Words;

fn compile(pattern: &str) -> Regex {
    RegexBuilder::new(pattern)
        .unicode(false)
        .case_insensitive(true)
        .ignore_whitespace(true)
        .build()
        .expect("the pattern is a constant and a test reads it")
}

macro_rules! patterns {
    ($($name:ident = $pattern:expr;)*) => {
        $(pub(super) static $name: LazyLock<Regex> = LazyLock::new(|| compile($pattern));)*
    };
}

// `w` is the word to which the number belongs: `context` says whether it is one of ours.
patterns! {
    TQDM = r"(?P<pc>\d{1,3})%\|[^|]*\|\ *(?P<n>\d+(?:\.\d+)?[kMG]?)/(?P<t>\d+(?:\.\d+)?[kMG]?)\ *(?P<unit>[a-z]*)\ *\[(?P<el>[\d:]+)<(?P<eta>[\d:?]+)(?:,\ *(?P<rate>[\d.]+|\?)\ *(?P<per>[a-z]+/s|s/[a-z]+))?";
    // The same without a total: `120it [00:30,  4.00it/s]`.
    COUNT = r"(?:^|[\ :])(?P<n>\d+)(?:it|steps?)\ \[[\d:]+(?:,\ *(?P<rate>[\d.]+|\?)\ *(?P<per>[a-z]+/s|s/[a-z]+))?";
    BYTES = r"%\|[^|]*\|\ *[\d.]+[kMGT]?i?B?/[\d.]+[kMGT]?i?B?\ *\[[^\]]*[kMG]i?B/s";
    // Keras and rich bars: `46/200 ━━━ 2s 17ms/step`, `12/100 [==>....] - ETA: 5s - loss`. While an epoch
    // goes on, the time behind Keras's bar is what is left, at its end what it took.
    BAR = r"(?:^|[\ \x80-\xff])(?P<n>\d{1,9})/(?P<t>\d{1,9})\ +(?:(?:\xe2[\x80-\xbf]{2})+(?:\ +(?P<eta>\d+(?::\d\d)+|\d+s)\ +\d+(?:\.\d+)?[mu]?s/step)?|\[[=>.\ ]+\])";
    // rich's bar, blank where it is not full: `training ━━━━━━        121/200 0:00:01`.
    RICH = r"\xe2[\x80-\xbf]{2}\ +(?P<n>\d{1,9})/(?P<t>\d{1,9})\ \d+:\d\d";
    // The bars of PyTorch-Ignite: `Epoch [3/3]: [47/50]  94%|###, loss=0.1 [00:00<00:00]`.
    IGNITE = r"\[(?P<n>\d{1,9})/(?P<t>\d{1,9})\]\ +(?P<pc>\d{1,3})%\|[^|]*\[[\d:]+<(?P<eta>[\d:?]+)";
    // The bars of Ultralytics: `50% ━━━━━━────── 4/8 3.1it/s 1.3s<1.3s`.
    SHARE_BAR = r"(?P<pc>\d{1,3})%\ (?:\xe2[\x80-\xbf]{2})+\ (?P<n>\d{1,9})/(?P<t>\d{1,9})\ +(?P<rate>\d+(?:\.\d+)?)\ *(?P<per>it/s|s/it)";
    // The row under the heads of a table of YOLO: epoch, memory, losses, instances, size of pictures.
    YOLO = r"^\s*(?P<n>\d+)/(?P<t>\d+)\s+\d+(?:\.\d+)?[GM]?\s+(?:[\d.]+\s+|nan\s+)+\d+:\s+\d+%";
    STEP = r#"(?P<w>steps?|iter(?:ation)?s?|it|itr|updates?)["']?\ *(?:(?P<sep>[:=\#])|\.\.\.)?\ *["'(\[]?\ *(?P<n>\d[\d,_]*)(?P<k>[kM]\b)?(?P<frac>\.\d)?(?:\ *(?:/|\ of\ |\ out\ of\ )\ *(?P<t>\d[\d,_]*))?"#;
    BATCH = r"(?P<w>batch(?:es)?)\ *[:=\#]?\ *[\[(]?\ *(?P<n>\d+)\ *(?:/|\ of\ )\ *(?P<t>\d+)";
    // `| epoch   1 |   200/ 2983 batches |`, `epoch 010:  2000 / 8223 loss=1.27`.
    BATCHES = r"[|:\ ]\ *(?P<n>\d+)\ */\ *(?P<t>\d+)\ (?:batches\b|loss=)";
    // `Epoch: [0][  400/5005]`, `Epoch(train) [100][ 50/4309]`, `Iter(train) [ 50/80000]`,
    // `Train: 5/300 [ 100/5004 (  2%)]`.
    INDEX = r"(?:epoch:?(?:\(train\))?\ *\[(?P<a>\d+)\]\ *|iter\(train\)\ *|^\W*train:\ *(?P<b>\d+)(?:/(?P<bs>\d+))?(?:\ *\(\ *\d+%\))?\ +|info\ +train:\ *(?P<c>\d+)(?:/(?P<cs>\d+))?(?:\ *\(\ *\d+%\))?\ +)\[\ *(?P<n>\d+)/\ *(?P<t>\d+)";
    // `[120/500] loss: 0.345`, `[ 120/1000] loss 0.9`; of two such brackets the second, behind that of the epochs.
    BRACKET = r"^[^a-z]*?\[\ *(?P<n>\d{1,9})/\ *(?P<t>\d{1,9})\ *\]\s*[^\s\[]";
    // The number of all steps, by a name of its own.
    TOTAL = r#"(?P<w>(?:total|max|num)_(?:train(?:ing)?_)?(?:steps|iters|iterations|updates))["']?\ *[:=]\ *["']?(?P<t>\d[\d,_]*(?:\.\d+)?(?:e\+?\d+)?)(?:[^a-z\d.%]|$)"#;
    CLU = r#"^\[(?P<n>\d{1,9})\]\ +[\w./-]+["']?\ *[=:]\ *["']?[+-]?\d"#;
    EPOCH = r#"(?P<w>epoch|ep)["']?(?:\ *(?:[:=\#]|\.\.\.)\ *|\ +|["'(\[]+\ *)["'(\[]?(?P<n>\d+(?:\.\d+)?)(?P<bad>[a-z_])?(?:\ *(?:/|\ of\ )\ *(?P<t>\d+))?"#;
    EPOCH_BRACKET = r"(?P<w>epoch):?(?:\(train\))?\ *\[(?P<n>\d+)(?:/(?P<t>\d+))?\]";
    // The table of Stable-Baselines3, whose steps are those of the environment.
    TIMESTEPS = r"\btotal_timesteps\ *\|\ *(?P<n>\d+)\ *\|";
    FPS = r"(?:^|[\ |])fps\ *\|\ *(?P<v>\d+(?:\.\d+)?)\ *\|";
    // A number is not cut at its dot: `2.345nats` is 2.345, and `2.345th` is none.
    LOSS = r#"(?P<name>[a-z\d_./\-]*loss)(?:\ train(?:ing)?)?["']?\ *[:=|]?\ *["'(]?(?P<v>[+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+|nan|inf(?:inity)?))(?:\ *(?:nats?|bits?)\b|[^a-z\d%.]|\.(?:\D|$)|$)"#;
    LR = r#"(?P<w>lr|learning[_\ ]rate)["']?\ *[:=|]?\ *["'\[(]*(?P<v>\d+(?:\.\d+)?(?:e[+-]?\d+)?)"#;
    RATE = r#"(?:(?P<w>(?:global_|train_)?steps?(?:/|_per_|\ per\ )s(?:ec(?:onds?)?)?|it/s|iters?/s(?:ec)?)["']?\ *[:=]|(?P<ups>ups)["']?\ *[:=\ ])\ *["']?(?P<v>\d+(?:\.\d+)?)"#;
    // `steps/s 2.00`: the number behind the name, where nothing but blanks stands between.
    RATE_BESIDE = r"(?P<w>(?:global_|train_)?steps?(?:/|_per_)s(?:ec(?:onds?)?)?|it/s(?:ec)?|iters?/s(?:ec)?)\ +(?P<v>\d+(?:\.\d+)?)(?:[^a-z\d.%/:]|$)";
    RATE_AFTER = r"(?P<v>\d+(?:\.\d+)?)\ *(?P<per>it/s|steps?/s(?:ec)?|iters?/s(?:ec)?|s/it|s/step|ms/step|us/step|ms/iter|s/iter)\b";
    // `ms/batch 12.50`, `s/it: 0.25`, `elapsed time per iteration (ms): 86545.2`.
    PACE = r#"(?:(?P<per>(?:[mu]s|s|sec)/(?:batch|iter(?:ation)?|it|step))|time\ per\ (?:iteration|step)\ \((?P<unit>[mu]?s)\))["']?\ *(?P<sep>[:=])?\ *(?P<v>\d+(?:\.\d+)?)"#;
    ETA = r#"(?:^|[^a-z])(?:eta|time\ (?:left|remaining)|remaining(?:\ time)?)["']?\ *[:=]?\ *["']?(?P<v>(?:\d+\ days?,?\ +)?\d+(?::\d\d)+|(?:\d+\ *d(?:ays?)?,?\ *)?(?:\d+\ *h(?:ours?)?\ *)?(?:\d+\ *m(?:in(?:utes?)?)?\ *)?(?:\d+(?:\.\d+)?\ *s(?:ec(?:onds?)?)?)?)(?:[^a-z\d]|$)"#;
    PERCENT = r"(?:progress|done|completed?)\W{0,4}(?P<a>\d{1,3}(?:\.\d+)?)\ ?%|(?:^|[\ (\[])(?P<b>\d{1,3}(?:\.\d+)?)\ ?%\ (?:done|completed?)\b";
    // A measurement beside a counter.
    METRIC = r#"(?:loss|acc(?:uracy)?|error|err|mse|lr|grad(?:_|\ )?norm|tokens?/s|tflop|steps?/s|steps_per_sec|it/s|s/it|ms/|seconds|sec\b|time|samples?/s|perplexity|ppl|reward|return|score|[a-z_/]+["']?\ *[=:]\ *["']?[+-]?\d+\.\d+)"#;
    STARTS = r#"^(?:\[[^\]]*\]\ *|[{("'\s]|training\ |train:?\ |=+\ |-+\ |\#\ )*(?:global[_\ ]step|train[_\ ]step|completed\ step|steps?|epoch|ep|iter(?:ation)?|it|batch)["']?\ *[:=\#]?\ *[\[(]?\d"#;
    // Lines with these words speak of a step; they do not report one.
    PROSE = r"\b(?:fail\w*|exception|abort\w*|crash\w*|exit\w*|stopp\w*|resum\w*|restor\w*|restart\w*|preempt\w*|load(?:ing|ed)\ (?:checkpoint|from)|sav(?:ed|ing)|retry\w*|killed|terminat\w*|raise)\b|\berrors?:\ +[a-z(]";
}

/// What a line must hold for an expression to be worth a try.
pub(super) mod hint {
    pub(in super::super) const STEP: u32 = 1;
    pub(in super::super) const EPOCH: u32 = 1 << 1;
    pub(in super::super) const BATCH: u32 = 1 << 2;
    pub(in super::super) const LOSS: u32 = 1 << 3;
    pub(in super::super) const LR: u32 = 1 << 4;
    pub(in super::super) const RATE: u32 = 1 << 5;
    pub(in super::super) const ETA: u32 = 1 << 6;
    pub(in super::super) const PERCENT: u32 = 1 << 7;
    pub(in super::super) const BAR: u32 = 1 << 8;

    /// The words and what each makes worth a try.
    pub(super) const WORDS: [(&str, u32); 51] = [
        ("step", STEP),
        ("iter", STEP),
        ("itr", STEP),
        ("it ", STEP),
        ("it:", STEP),
        ("it=", STEP),
        ("it\"", STEP),
        ("it'", STEP),
        ("it[", STEP),
        ("it(", STEP),
        ("update", STEP),
        ("timesteps", STEP),
        ("epoch", EPOCH | BATCH),
        ("ep ", EPOCH),
        ("ep:", EPOCH),
        ("ep=", EPOCH),
        ("ep\"", EPOCH),
        ("ep'", EPOCH),
        ("ep[", EPOCH),
        ("batch", BATCH | RATE),
        ("train: ", BATCH),
        ("iter(", BATCH),
        ("loss", LOSS),
        ("lr", LR),
        ("learning", LR),
        ("steps/s", RATE),
        ("step/s", RATE),
        ("it/s", RATE),
        ("iter", RATE),
        ("s/it", RATE),
        ("c/it", RATE),
        ("/step", RATE),
        ("r step", RATE),
        ("step_per", RATE),
        ("steps_per", RATE),
        (" per s", RATE),
        ("ups", RATE),
        ("fps", RATE),
        ("eta", ETA),
        ("remaining", ETA),
        ("time left", ETA),
        ("%", PERCENT),
        ("it [", BAR),
        ("step [", BAR),
        ("steps [", BAR),
        ("\u{2501}", BAR),
        ("\u{2500}", BAR),
        ("\u{2578}", BAR),
        ("[=", BAR),
        ("[>", BAR),
        ("[.", BAR),
    ];
}

static HINTS: LazyLock<Words> = LazyLock::new(|| {
    let words: Vec<String> = hint::WORDS.iter().map(|(word, _)| (*word).to_owned()).collect();
    Words::new(&words)
});

/// Which expressions are worth a try on a line.
pub(super) fn hints(body: &[u8]) -> u32 {
    let mut all = 0;
    HINTS.each(body, |found| {
        all |= hint::WORDS.get(found.word).map_or(0, |(_, hint)| *hint);
    });
    all
}

/// The last match, where the line holds what the expression needs. Compiling one takes longer than
/// reading a page of text, so one that no line needs is left alone.
pub(super) fn hinted<'h>(
    hints: u32,
    needed: u32,
    regex: &LazyLock<Regex>,
    text: &'h [u8],
) -> Option<Captures<'h>> {
    if hints & needed == 0 { None } else { last(regex, text) }
}

/// The last match.
pub(super) fn last<'h>(regex: &Regex, text: &'h [u8]) -> Option<Captures<'h>> {
    all(regex, text).last()
}

/// All matches. Room for groups is made before anything is looked for: most lines are spared it.
pub(super) fn all<'r, 'h>(
    regex: &'r Regex,
    text: &'h [u8],
) -> impl Iterator<Item = Captures<'h>> + use<'r, 'h> {
    regex.is_match(text).then(|| regex.captures_iter(text)).into_iter().flatten()
}

/// Lines that begin by saying that they are an evaluation's, or another work than the training's.
pub(super) static ELSEWHERE: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"^[^a-z]*(?:
            (?:val(?:id(?:ation)?)?|eval(?:uation)?|test)(?:\ *[:(\[\]]|\ +(?:set|epoch|step|iter|batch|dataloader|results?|at|on|\d))
          | (?:validating|evaluating|testing|predicting|sanity\ check\w*)\b
          | (?:download|upload|fetch|extract|unpack|tokeniz|preprocess|generating|cach|scann|copying|resolv|install)\w*\b
          | wandb:\  | (?:loading|saving)\b | (?:map|filter)(?:\ \(num_proc=\d+\))?:\ +\d+% | running\ tokenizer
        ) | \ valid\ on\ ' | (?:epoch|iter)\((?:val|test)\) | \|\ *(?:validation|eval(?:uation)?|test)\ *\|",
    )
});

/// What stands before the bar of another work.
pub(super) static OTHER_WORK: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"\b(?:val(?:id\w*)?|eval\w*|test\w*|sanity|predict\w*|infer\w*|map|filter|images\ +instances
        |(?:download|upload|fetch|extract|unpack|tokeniz|preprocess|generat|cach|scann|load|sav|index|convert|comput|resolv|copy|pack|group|encod|shard)\w*)\b",
    )
});

/// What stands before a training's bar.
pub(super) static TRAINING: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"\b(?:epochs?|ep|train\w*|fit\w*|steps?|iter\w*|batch\w*|rounds?|progress|loss)\b|^\s*\d+/\d+\s",
    )
});
