"""The suites: whose tests they are, where those come from, and what a session has to be given for them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    name: str
    what: str
    arguments: tuple[str, ...]  # of pytest
    requirements: str = ""  # NAME.txt: what is installed, pinned; empty: the Python of the caller, as it is
    source: str = ""  # the distribution whose source has the tests; empty: they are installed with the package
    profile: dict[str, str] = field(default_factory=dict)  # settings of the session beyond the usual ones
    env: dict[str, str] = field(default_factory=dict)


NETWORK = {"network": "host"}
PROGRAMS = {"subprocess": "on"}


def packages(*names: str) -> tuple[str, ...]:
    return ("--pyargs", *names)


SUITES = {
    suite.name: suite
    for suite in (
        Suite(
            "requests",
            "all of its tests, with a server of its own on the loopback",
            ("tests",),
            requirements="requests",
            source="requests",
            profile=NETWORK,
        ),
        Suite(
            "joblib",
            "all of its tests",
            packages("joblib"),
            requirements="science",
            profile={**PROGRAMS, **NETWORK},
        ),
        Suite(
            "pyarrow",
            "arrays, files, file systems and formats, without services",
            (
                "-k",
                "not s3 and not gcs and not azure and not hdfs",
                *packages(
                    "pyarrow.tests.test_array",
                    "pyarrow.tests.test_csv",
                    "pyarrow.tests.test_feather",
                    "pyarrow.tests.test_fs",
                    "pyarrow.tests.test_io",
                    "pyarrow.tests.test_ipc",
                    "pyarrow.tests.test_memory",
                    "pyarrow.tests.parquet",
                ),
            ),
            requirements="science",
            profile={**PROGRAMS, **NETWORK},
        ),
        Suite(
            "sqlalchemy",
            "base, engine and sqlite",
            ("-p", "no:warnings", "test/base", "test/engine", "test/dialect/test_sqlite.py"),
            requirements="sqlalchemy",
            source="sqlalchemy",
        ),
        Suite(
            "sklearn",
            "parts of linear_model, cluster, model_selection and utils",
            packages(
                "sklearn.cluster.tests.test_k_means",
                "sklearn.linear_model.tests.test_base",
                "sklearn.model_selection.tests.test_split",
                "sklearn.utils.tests.test_parallel",
                "sklearn.utils.tests.test_validation",
            ),
            requirements="science",
            profile=PROGRAMS,
        ),
        Suite(
            "scipy",
            "io, and parts of optimize, sparse and stats",
            packages(
                "scipy.io",
                "scipy.optimize.tests.test_minpack",
                "scipy.optimize.tests.test_zeros",
                "scipy.optimize.tests.test_least_squares",
                "scipy.sparse.csgraph",
                "scipy.sparse.tests.test_construct",
                "scipy.stats.tests.test_stats",
            ),
            requirements="science",
            profile=PROGRAMS,
        ),
        Suite(
            "pandas-groupby",
            "the tests of group-by",
            packages("pandas.tests.groupby"),
            requirements="science",
        ),
        Suite("networkx", "all of its tests", packages("networkx"), requirements="science"),
        Suite("sample", "a few tests that show what the runner sees", ("cases.py",)),
    )
}
